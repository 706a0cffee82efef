"""What the plug-ins that are on bring to the rooms below: hooks and MCP servers. Both block: they look at all files of
the plug-ins."""

from collections.abc import Sequence
from pathlib import Path

from amanu.context.plugins import enabled_plugins
from amanu.hooks.config import hooks_of
from amanu.hooks.model import Hook, HookSource
from amanu.mcp.config_files import PluginServers


def plugin_hooks(store: Path, folder: Path) -> list[Hook]:
    """Their hooks, which run in that folder."""
    hooks: list[Hook] = []
    for plugin in enabled_plugins(store):
        name = f"the plug-in {plugin.name}"
        source = HookSource(plugin.folder, name, "plugin", plugin.layout, folder, plugin.folder)
        for tree in plugin.hooks:
            hooks += hooks_of({"hooks": tree}, source)
    return hooks


def plugin_servers(store: Path) -> Sequence[PluginServers]:
    """Their MCP servers."""
    plugins = [plugin for plugin in enabled_plugins(store) if plugin.mcp_servers]
    return [PluginServers(plugin.name, plugin.folder, plugin.mcp_servers) for plugin in plugins]
