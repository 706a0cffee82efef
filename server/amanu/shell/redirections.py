"""Judge redirections (`2>&1`, `> file`, `< file`): what they read and write."""

import os
import re
import stat
from typing import TYPE_CHECKING

from amanu.core.command import Command
from amanu.shell import catastrophic, files
from amanu.shell.call import NotHarmless
from amanu.shell.state import State
from amanu.shell.syntax import blank, text, unclear
from amanu.shell.words import WORDS, WordReader

if TYPE_CHECKING:
    from tree_sitter import Node

_HARMLESS = ("/dev/null", "/dev/stdout", "/dev/stderr")
_WRITES = (">", ">>", ">|", "&>", "&>>", ">&")


def redirection(node: "Node", source: bytes, reader: WordReader, state: State) -> Command | None:
    """Judge a `file_redirect`. None when it involves no file, or one without an effect. Raises `Unclear`."""
    parts = list(node.children)
    descriptor = parts.pop(0) if parts and parts[0].type == "file_descriptor" else None
    if not parts:
        raise unclear(node)
    operator = parts.pop(0)
    _certain(node, source, descriptor)
    kind = text(operator)
    if kind in (">&-", "<&-") and not parts:
        return None
    if len(parts) != 1 or parts[0].type not in WORDS:
        raise unclear(node)
    blank(source, operator.end_byte, parts[0].start_byte, lines=False)
    fields = reader.fields(parts[0])
    path = fields[0].value if len(fields) == 1 else None
    if kind in (">&", "<&") and path and re.fullmatch(r"[0-9]+-?", path):
        return None
    if kind in _WRITES:
        return None if path in _HARMLESS else _write(text(node), path)
    if kind == "<":
        return None if path == "/dev/null" or any(field.pipe for field in fields) else reading(text(node), path, state)
    raise unclear(node)


def reading(written: str, path: str | None, state: State) -> Command:
    """Judge `< path`. Only a regular file that tools may read has no effect."""
    if path is None or state.folder is None:
        return Command(written, ("<", path), "some", "Which file it reads is not known in advance.")
    if path.startswith(("/dev/tcp/", "/dev/udp/")):
        return Command(written, ("<", path), "some", f"Connects to {path[9:]}.", network=True)
    try:
        real = (state.folder / path).resolve(strict=True)
        regular = stat.S_ISREG(real.stat().st_mode)
    except (OSError, RuntimeError, ValueError):
        return Command(written, ("<", path), "some", f"There is no file {path} to read.")
    try:
        files.check_readable(real, state.context)
        readable = regular
    except NotHarmless:
        readable = False
    if not readable:
        return Command(written, ("<", path), "some", f"Reads {path}, which needs approval.", reads=(str(real),))
    return Command(written, ("<", path), "none", f"Reads {path}.", reads=(str(real),))


def _write(written: str, path: str | None) -> Command:
    if path is None:
        return Command(written, (">", None), "some", "Which file it writes is not known in advance.")
    if path.startswith(("/dev/tcp/", "/dev/udp/")):
        return Command(written, (">", path), "some", f"Connects to {path[9:]}.", network=True)
    if why := catastrophic.by_target(os.path.normpath(path)):
        return Command(written, (">", path), "ruin", why)
    return Command(written, (">", path), "some", f"Writes the file {path}.")


def _certain(node: "Node", source: bytes, descriptor: "Node | None") -> None:
    """Raise `Unclear` where bash and tree-sitter differ: bash reads `2>` as a descriptor only where `2` stands alone,
    and `{x}>` as one that tree-sitter does not know."""
    preceding = source[: node.start_byte][-100:]
    word = re.search(rb"[^\s|&;()<>]*\Z", preceding)
    if word is None or not word[0]:
        return
    if descriptor is not None or word[0].endswith(b"}") or re.fullmatch(rb"[0-9]+", word[0]) or len(word[0]) >= 100:
        raise unclear(node)
