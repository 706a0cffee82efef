"""The MCP servers of the plug-ins that are on."""

from collections.abc import Sequence
from pathlib import Path

from amanu.context.plugins import enabled_plugins
from amanu.mcp.config_files import PluginServers


def plugin_servers(store: Path) -> Sequence[PluginServers]:
    """Blocks: it checks all files of the plug-ins."""
    plugins = [plugin for plugin in enabled_plugins(store) if plugin.mcp_servers]
    return [PluginServers(plugin.name, plugin.folder, plugin.mcp_servers) for plugin in plugins]
