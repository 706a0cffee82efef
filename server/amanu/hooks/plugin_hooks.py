"""Hooks of the plug-ins that are on."""

from pathlib import Path

from amanu.context.plugins import enabled_plugins
from amanu.hooks.config import hooks_of
from amanu.hooks.model import Hook, HookSource


def plugin_hooks(store: Path, folder: Path) -> list[Hook]:
    """The hooks of the plug-ins in that store; they run in that folder. Blocks: it checks all files of the plug-ins."""
    hooks: list[Hook] = []
    for plugin in enabled_plugins(store):
        name = f"the plug-in {plugin.name}"
        source = HookSource(plugin.folder, name, "plugin", plugin.layout, folder, plugin.folder)
        for tree in plugin.hooks:
            hooks += hooks_of({"hooks": tree}, source)
    return hooks
