"""Two versions of some files → a patch that `git apply` takes. Made by git itself, in a folder of our own that holds
nothing but these files, and without anybody's settings. Blocks."""

import os
import re
import subprocess
import tempfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_SECONDS = 60.0
_COMMAND = ["git", "-c", "core.quotePath=false", "-c", "core.attributesFile=../attributes", "diff", "--no-index"]
_OPTIONS = ["--no-prefix", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames"]
_RENAMED = re.compile(rb'^(rename (?:from|to) "?)[ab]/', re.MULTILINE)
"""Even without prefixes, git puts the names of the two folders into these lines. No line of content begins like
that."""
_NEITHER = "/dev/null"


@dataclass(frozen=True)
class PatchFile:
    """A file or link, in one version."""

    data: bytes
    """Its content; of a link, the target."""
    executable: bool = False
    is_link: bool = False

    @property
    def is_utf8(self) -> bool:
        try:
            return "\0" not in self.data.decode()
        except UnicodeDecodeError:
            return False


Tree = Mapping[str, PatchFile]
"""Relative path → file."""


@dataclass(frozen=True)
class PatchChange:
    path: str
    change: Literal["create", "delete", "edit", "rename"]
    new_path: str | None
    added: int
    removed: int
    """Lines; 0 for binary files."""


class PatchError(Exception):
    """A patch cannot be made; the message is a sentence for the user."""


def git_patch(before: Tree, after: Tree) -> tuple[str, list[PatchChange]]:
    """The patch, which is valid UTF-8, and its files by path. What is not UTF-8 text goes in as binary. Raises
    `PatchError`."""
    try:
        return _made(before, after)
    except (OSError, UnicodeError) as error:
        raise PatchError(f"The patch cannot be made: {error}") from None


def _made(before: Tree, after: Tree) -> tuple[str, list[PatchChange]]:
    binary = {name for tree in (before, after) for name, file in tree.items() if not file.is_utf8}
    patch, changes = "", list[PatchChange]()
    for names, attributes in (({*before, *after} - binary, ""), (binary, "* -diff\n")):
        if names:
            part, files = _part(_only(before, names), _only(after, names), attributes)
            patch += part
            changes += files
    return patch, sorted(changes, key=lambda each: each.path)


def _only(tree: Tree, names: Collection[str]) -> Tree:
    return {name: file for name, file in tree.items() if name in names}


def _part(before: Tree, after: Tree, attributes: str) -> tuple[str, list[PatchChange]]:
    with tempfile.TemporaryDirectory(prefix="amanu-patch-") as name:
        folder = Path(name)
        (folder / "attributes").write_text(attributes)
        work = folder / "work"
        for side, tree in (("a", before), ("b", after)):
            (work / side).mkdir(parents=True)
            for path, file in sorted(tree.items(), key=lambda each: each[1].is_link):  # nothing goes through a link
                _write(work / side / path, file)
        patch = _RENAMED.sub(rb"\1", _git(work, "--binary", "--full-index"))
        return patch.decode(), list(_changes(_git(work, "--numstat", "-z").decode()))


def _write(path: Path, file: PatchFile) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if file.is_link:
        os.symlink(file.data, os.fsencode(path))  # noqa: PTH211 (its target is bytes)
        return
    path.write_bytes(file.data)
    path.chmod(0o755 if file.executable else 0o644)


def _git(folder: Path, *options: str) -> bytes:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1"}
    environment |= {"GIT_CEILING_DIRECTORIES": str(folder.parent.resolve()), "LC_ALL": "C"}
    try:
        ended = subprocess.run(
            [*_COMMAND, *_OPTIONS, *options, "a", "b"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise PatchError("git is needed to make a patch, and is not installed.") from None
    except subprocess.TimeoutExpired:
        raise PatchError(f"git did not make the patch within {_SECONDS:g} seconds. Name fewer files.") from None
    if ended.returncode not in (0, 1):
        last = ended.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise PatchError(f"git did not make the patch: {last}")
    return ended.stdout


def _changes(printed: str) -> Iterator[PatchChange]:
    """Read what `--numstat -z` printed: lines added, lines removed, NUL, old name, NUL, new name, NUL."""
    fields = iter(printed.split("\0"))
    while counts := next(fields, ""):
        added, removed = (int(count) if count != "-" else 0 for count in counts.split("\t")[:2])
        old, new = next(fields), next(fields)
        old_name, new_name = (each.partition("/")[2] for each in (old, new))
        if old == _NEITHER:
            yield PatchChange(new_name, "create", None, added, removed)
        elif new == _NEITHER:
            yield PatchChange(old_name, "delete", None, added, removed)
        elif old_name == new_name:
            yield PatchChange(old_name, "edit", None, added, removed)
        else:
            yield PatchChange(old_name, "rename", new_name, added, removed)
