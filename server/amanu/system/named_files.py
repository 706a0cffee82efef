"""The files that a command line names: what is approved with a command, since a line says little about what runs."""

import glob
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

MAX_FILES = 50
"""The most files that one command is taken to name."""

_BREAKS = re.compile(r"""[\s"'`;&|()<>=,]+""")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_MODULE = re.compile(r"(?:^|\s)-m[\s\"']*([A-Za-z_][\w.]*)")


def named_files(
    texts: Sequence[str], folder: Path, home: str, is_theirs: Callable[[Path], bool] = lambda path: True
) -> list[Path]:
    """The files that a command, or the words of one, names, as real paths, sorted; only those that `is_theirs`. A word
    may be relative to the folder it runs in, or to a folder that the command names (`cd tools && ./x.sh`). A module
    (`python -m tools.x`) names its file."""
    modules = [path for module in _MODULE.findall("\n".join(texts)) for path in _module_files(module)]
    words = dict.fromkeys([*(word for text in texts for word in words_of(text, home)), *modules])
    bases = [folder, *(path for word in words if (path := _below(folder, word)) is not None and path.is_dir())]
    found: set[Path] = set()
    for word in words:
        for base in bases:
            for path in _files(base, word):
                if is_theirs(path):
                    found.add(Path(os.path.realpath(path)))
    return sorted(found)


def words_of(text: str, home: str, depth: int = 0) -> Iterator[str]:
    """Everything in a command line that may be the name of a file."""
    pieces = [*_BREAKS.split(text)]
    try:
        shell_words = shlex.split(text)
    except ValueError:  # an open quote
        shell_words = []
    pieces += shell_words
    for piece in pieces:
        if piece and "\0" not in piece and not piece.startswith("-"):
            yield f"{home}/{piece[2:]}" if piece.startswith("~/") and home else piece
    if depth < 2:
        for word in shell_words:
            if word != text and re.search(r"\s", word):  # `bash -c "…"`
                yield from words_of(word, home, depth + 1)


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """The text with the variables that are known replaced."""
    return _VARIABLE.sub(lambda match: variables.get(match[1] or match[2], match[0]), text)


def _module_files(module: str) -> Iterator[str]:
    path = module.replace(".", "/")
    yield from (f"{path}.py", f"{path}/__main__.py")
    parts = path.split("/")
    yield from ("/".join((*parts[:count], "__init__.py")) for count in range(1, len(parts) + 1))


def _below(base: Path, word: str) -> Path | None:
    try:
        path = base / word
        return path if path.exists() else None
    except (OSError, ValueError):  # a name too long, a ring of links
        return None


def _files(base: Path, word: str) -> list[Path]:
    """The files of that name, or that match it as a shell's pattern; one more than a command may name at most."""
    if not glob.has_magic(word):
        path = _below(base, word)
        return [path] if path is not None and path.is_file() else []
    matching = glob.iglob(word, root_dir=base)  # noqa: PTH207 - `Path.glob` takes no absolute patterns
    return [path for name in islice(matching, MAX_FILES + 1) if (path := base / name).is_file()]
