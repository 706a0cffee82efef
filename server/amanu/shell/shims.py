"""Version managers' shims: programs in PATH that choose what to run by files of the current folder.

asdf can start programs from the folder that `.tool-versions` names (`nodejs path:./x`), mise and proto likewise, and
Volta downloads what package.json names. pyenv and similar tools only choose among what is installed, and are not shims
here.
"""

from pathlib import Path

from amanu.core.command import CommandContext

_BY_NAME = ("volta-shim", "mise", "rtx", "asdf", "proto", "proto-shim")
_FILES = (
    *(".tool-versions", "mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml", ".rtx.toml", ".mise", "mise"),
    *(".config/mise", ".config/mise.toml", ".prototools", "package.json"),
)


def version_file(program: str, folder: Path, context: CommandContext) -> Path | None:
    """The workspace file that decides which program runs instead of this one. None when it is not a shim, or there is
    no such file."""
    path = Path(program)
    if not (path.parent.name == "shims" and ".pyenv" not in path.parts) and path.resolve().name not in _BY_NAME:
        return None
    within = [
        ancestor
        for ancestor in (folder, *folder.parents)
        if any(ancestor == r or r in ancestor.parents for r in context.roots)
    ]
    return next((ancestor / name for ancestor in within for name in _FILES if (ancestor / name).exists()), None)
