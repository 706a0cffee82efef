"""Programs that stand for another: version managers put them into PATH, and ask files of the folder for which.

asdf starts the programs of the folder that `.tool-versions` names (`nodejs path:./x`), mise and proto have the like,
and Volta fetches what package.json asks for. pyenv and its kin choose among what is installed: they are not meant here.
"""

from pathlib import Path

from amanu.core.command import CommandContext

_BY_NAME = ("volta-shim", "mise", "rtx", "asdf", "proto", "proto-shim")
_FILES = (
    *(".tool-versions", "mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml", ".rtx.toml", ".mise", "mise"),
    *(".config/mise", ".config/mise.toml", ".prototools", "package.json"),
)


def version_file(program: str, folder: Path, context: CommandContext) -> Path | None:
    """The file of the workspace that says which program runs instead of that one. None: it is no such program, or
    there is no such file."""
    path = Path(program)
    if not (path.parent.name == "shims" and ".pyenv" not in path.parts) and path.resolve().name not in _BY_NAME:
        return None
    within = [
        ancestor
        for ancestor in (folder, *folder.parents)
        if any(ancestor == r or r in ancestor.parents for r in context.roots)
    ]
    return next((ancestor / name for ancestor in within for name in _FILES if (ancestor / name).exists()), None)
