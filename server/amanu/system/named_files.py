"""The files that a command line names: what is approved with a command, since a line says little about what runs."""

import glob
import json
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import unquote

MAX_FILES = 50
"""The most files that one command is taken to name."""

_MANIFEST = 1 << 20
"""The most bytes of a package.json that are read."""

_WORD = 1000
"""The longest word, in characters, whose braces are expanded."""

_BREAKS = re.compile(r"""[\s"'`;&|()<>=,]+""")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_MODULE = re.compile(r"(?:^|\s)-[bBdEiIOPqsSuvx]*m[\s\"']*([A-Za-z_][\w.]*)")
_OBJECT = re.compile(r"([A-Za-z_][\w.]*):[A-Za-z_]")
_COMMANDS = re.compile(r"[;&|()`\n]+")
_ENTERS = re.compile(r"""(?:^|[\s;&|"'])cd\s+["']?([^\s;&|"']+)""")
_ALTERNATIVES = re.compile(r"\{([^{}]*,[^{}]*)\}")

_NODE = (
    *(f"{{}}.{ending}" for ending in ("js", "mjs", "cjs", "ts", "mts", "tsx", "py")),
    *(f"{{}}/index.{ending}" for ending in ("js", "mjs", "cjs", "ts")),
    "{}/package.json",
)
_RUNS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("python", "pypy"), ("{}/__main__.py",)),
    **dict.fromkeys(("node", "nodejs", "tsx", "ts-node", "nodemon", "deno"), _NODE),
    "bun": (*_NODE, "package.json"),
    **dict.fromkeys(("npm", "pnpm", "yarn"), ("package.json",)),
    **dict.fromkeys(("make", "gmake"), ("GNUmakefile", "makefile", "Makefile")),
    "just": ("justfile", "Justfile", ".justfile"),
    **dict.fromkeys(("uv run", "poetry run", "pdm run"), ("{}/__main__.py", "pyproject.toml")),
    "go run": ("{}/*.go",),
}
"""A program, or a program and its verb → the files that it runs besides those named to it. `{}` is what it is told to
run; if that is a file, no other counts."""
_VERBS = frozenset(("run", "watch", "exec", "start"))
_FETCHES = frozenset(("dlx", "exec", "create", "init", "x", "tool"))
"""Verbs that fetch programs from elsewhere."""
_FOLDERS = frozenset(("-C", "--directory", "--project", "--prefix", "--cwd", "--dir"))
"""The word after these is the folder that something runs in."""
_VALUED = _FOLDERS | {
    *("-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions", "--tsconfig"),  # node
    *("-X", "-W"),  # Python
    *("-p", "--python", "-w", "--with", "--with-editable", "--with-requirements", "--extra", "--group"),  # uv
    *("-F", "--filter", "--workspace", "-f", "--file", "--env-file"),
}
"""The word after these is not what is run."""


def named_files(
    texts: Sequence[str], folder: Path, home: str, is_theirs: Callable[[Path], bool] = lambda path: True
) -> list[Path]:
    """The files that a command, or the words of one, names, as real paths, sorted; only those that `is_theirs`. A word
    may be relative to the folder it runs in, or to a folder that the command names (`cd tools && ./x.sh`). A module
    (`python -m tools.x`, `uvicorn tools.x:app`) names its file, a program what it looks for itself (`npm start`)."""
    texts = [text.replace("\0", " ") for text in texts]
    words = dict.fromkeys(word for text in texts for word in words_of(text, home))
    modules: list[str] = _MODULE.findall("\n".join(texts))
    modules += [match[1] for word in words if (match := _OBJECT.match(word)) is not None]
    words |= dict.fromkeys(path for module in modules for path in _module_files(module))
    bases = [folder, *(path for word in words if (path := _below(folder, word)) is not None and path.is_dir())]
    places = [*((base, word) for base in bases for word in words), *_run(texts, bases)]
    paths = (path for base, word in dict.fromkeys(places) for path in _files(base, word))
    return sorted({Path(os.path.realpath(path)) for path in paths if is_theirs(path)})


def words_of(text: str, home: str, depth: int = 0) -> Iterator[str]:
    """Everything in a command line that may be the name of a file."""
    try:
        shell_words = shlex.split(text)
    except ValueError:  # an open quote
        shell_words = []
    pieces = [text, *_BREAKS.split(text), *shell_words]
    pieces += [word for piece in shell_words for word in islice(_alternatives(piece), MAX_FILES + 1) if word != piece]
    for piece in pieces:
        for word in _parts(piece):
            yield f"{home}/{word[2:]}" if word.startswith("~/") and home else word
    if depth < 2:
        for word in shell_words:
            if word != text and re.search(r"\s", word):  # `bash -c "…"`
                yield from words_of(word, home, depth + 1)


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """The text with the variables that are known replaced."""
    return _VARIABLE.sub(lambda match: variables.get(match[1] or match[2], match[0]), text)


def _parts(piece: str) -> Iterator[str]:
    """A word, and what else it may hold the name of: `srv.py:app`, `file:///srv.js`, `-r./x.js`, `--file=a b`."""
    if "\0" in piece:
        return
    if piece.startswith("-"):
        value = piece.partition("=")[2] if piece.startswith("--") else piece[2:]
        piece = value if re.search(r"[./]", value) else ""
    if piece:
        yield piece
        if ":" in piece:
            yield from (unquote(part) for part in piece.split(":") if part and "%00" not in part)


def _alternatives(word: str) -> Iterator[str]:
    """The words that a shell makes of `{run,x}.sh`."""
    words = [word] if len(word) <= _WORD else []
    while words:
        word = words.pop()
        if (match := _ALTERNATIVES.search(word)) is None:
            yield word
        else:
            words += [word[: match.start()] + choice + word[match.end() :] for choice in match[1].split(",")]


def _run(texts: Sequence[str], bases: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """The files that the programs of a command look for themselves, each with the folder that it may be in."""
    lines = [text for text in texts if len(texts) == 1 or re.search(r"\s", text)]
    entered = [] if any("(" in line for line in lines) else _ENTERS.findall("\n".join(lines))
    commands = [tuple(filter(None, _BREAKS.split(part))) for line in lines for part in _COMMANDS.split(line)]
    whole = tuple(part for text in texts for part in (text.split("=", 1) if text.startswith("--") else (text,)))
    for words in dict.fromkeys((whole, *commands)):
        for place, word in enumerate(words):
            rest = words[place + 1 :]
            name = re.sub(r"[\d.]+$", "", PurePath(word).name)
            templates = _RUNS.get(name) or (_RUNS.get(f"{name} run") if "run" in rest else None)
            if templates:
                folders = [value for option, value in pairwise(rest) if option in _FOLDERS] or entered
                inside = [path for name in folders if (path := _below(bases[0], name)) is not None and path.is_dir()]
                yield from _looked_for(
                    templates, [*_operands(rest)], bases, inside if inside and len(folders) == 1 else bases
                )


def _operands(words: Iterable[str]) -> Iterator[str]:
    """The words that are no options, nor values of those that take one."""
    before = ""
    for word in words:
        if not word.startswith("-") and before not in _VALUED:
            yield word
        before = word


def _looked_for(
    templates: Sequence[str], operands: Sequence[str], bases: Sequence[Path], inside: Sequence[Path]
) -> Iterator[tuple[Path, str]]:
    told = next((word for word in operands if word not in _VERBS), "")
    if told and any("{}" in template for template in templates) and any(_files(base, told) for base in bases):
        return
    for template in templates:
        if "{}" not in template:
            fetches = bool(operands) and operands[0] in _FETCHES
            yield from () if fetches else ((base, template) for base in inside)
        elif told:
            yield from ((base, template.replace("{}", told)) for base in bases)
    if "{}/package.json" in templates and told:
        for base in bases:
            if main := _main(base / told / "package.json"):
                yield from ((base / told, name) for name in (main, *(each.replace("{}", main) for each in templates)))


def _main(package: Path) -> str:
    """The file that a package says is its program; "" where it does not."""
    try:
        if package.stat().st_size > _MANIFEST:
            return ""
        tree: Any = json.loads(package.read_bytes())
        main: Any = tree.get("main", "")
    except (OSError, ValueError, AttributeError, RecursionError):
        return ""
    return main if isinstance(main, str) and "\0" not in main else ""


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
    """The files of that name, or that match it as a shell pattern; at most one more than a command may name."""
    path = _below(base, word)
    if path is not None and path.is_file():
        return [path]
    if not glob.has_magic(word):
        return []
    matching = glob.iglob(word, root_dir=base)  # noqa: PTH207 - `Path.glob` takes no absolute patterns
    return [path for name in islice(matching, MAX_FILES + 1) if (path := base / name).is_file()]
