"""Finds and reads the files of project memory, and what they import. Blocking: call it in a thread.

    <config>/AGENTS.md                       the user's own, always
    <folder>/{AGENTS,GEMINI,CLAUDE}.md       of the folders from the repository's down to a root, and of those below it

Files of a workspace are read only once it is trusted, and only with the content that was trusted (`TrustCheck`).
Folders of the repository above a root count too: a user who opens a part of a repository expects its rules. A
repository is where a `.git` is (seen, never read) in a folder that the user owns, as git itself requires: in `/tmp`
anybody could put one, and an AGENTS.md, above the user's folders. The home folder and those above it belong to no
project.

`@path` in a file imports another one, which follows as a file of its own; the mention stays as it is written. An import
never leads out of the repository (from the user's own file: out of their home). Files that need approval are not read,
and all reading goes through a path guard: no link out, no pipe, no device. The text on the disk counts, not what is
unsaved in an editor: half a sentence is no rule.
"""

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from amanu.context.memory_format import framed, mentions, merely_mentions
from amanu.core.tool import Subject, SubjectFilter, ToolError, TrustCheck
from amanu.text.display import visible
from amanu.workspace.encodings import decode
from amanu.workspace.ignore import is_ignored
from amanu.workspace.outer_rules import outer_rules
from amanu.workspace.path_guard import PathGuard
from amanu.workspace.workspace import Workspace

NAMES = ("AGENTS.md", "GEMINI.md", "CLAUDE.md")
"""The common name first: of equal texts in one folder that file is used."""
MAX_FILE = 64 * 1024
"""Bytes read of one file; twice what Codex reads in all."""
MAX_TOTAL = 200 * 1024
"""Characters in the system prompt: about 50,000 tokens, a quarter of the usual window. A smaller window gets a quarter
too: one character for each of its tokens."""
MAX_FOLDER = 64 * 1024
"""Characters of one folder below a root, imports included."""
MAX_FILES = 50
"""Files read in all, imports included."""
DEPTH = 5
"""Levels of imports; Gemini CLI has the same limit."""

CUT = "\n(truncated: the file is longer)"


@dataclass(frozen=True)
class MemoryFile:
    """A file of project memory, as the model is told it."""

    path: str
    """As the model and the user see it: relative to the root where that is unambiguous, else absolute."""
    text: str


@dataclass
class MemoryScan:
    """What was found in some folders."""

    files: list[MemoryFile] = field(default_factory=list[MemoryFile])
    left_out: list[str] = field(default_factory=list[str])
    """What is there and was left out: a sentence each, for the user."""


class MemoryFiles:
    """The memory files of one session's workspace. `user_file` is the user's own (None leaves it out), `home` their
    home folder; `allowed` says what is read without a question, `covers` what the user trusted; `of_plugins` returns
    the files of plug-ins that are on."""

    def __init__(
        self,
        workspace: Workspace,
        user_file: Path | None,
        allowed: SubjectFilter,
        home: Path | None = None,
        *,
        covers: TrustCheck,
        of_plugins: Callable[[], Sequence[Path]] = tuple,
    ) -> None:
        self._workspace = workspace
        self._of_plugins = of_plugins
        self._own = user_file and Path(os.path.realpath(user_file.parent)) / user_file.name
        self._allowed = allowed
        self.covers = covers
        self._home = Path(os.path.realpath(home or Path.home()))
        self.most = MAX_TOTAL
        """Characters that all of it may have."""

    def fit(self, window: int) -> None:
        """Limit what is read to what suits a model's window of so many tokens."""
        self.most = min(MAX_TOTAL, window)

    def base(self, *, trusted: bool) -> MemoryScan:
        """The user's own file, those of plug-ins, then, for each root of a trusted workspace, those of the folders from
        its repository down to it."""
        gathering = _Gathering(self, self.most, trusted=trusted)
        if self._own is not None:
            gathering.take(self._own, PathGuard([self._home, self._own.parent]))
        for path in self._of_plugins():
            gathering.take(path, PathGuard([path.parent]))
        gathering.checked = True
        for root in self._workspace.roots if trusted else ():
            top = repository(root, self._home)
            guard = self._guard(top)
            for folder in reversed(
                [parent for parent in (root, *root.parents) if parent == top or top in parent.parents]
            ):
                gathering.take_folder(folder, guard)
        return gathering.found

    def below(self, folders: Iterable[Path]) -> MemoryScan:
        """The files of folders below the roots of a trusted workspace. Folders that git ignores are left out, and
        Amanu's own."""
        collected = MemoryScan()
        for folder in sorted(folders):
            if not any(os.path.lexists(folder / name) for name in NAMES) or self._is_hidden(folder):
                continue
            root = self._workspace.roots[self._workspace.guard.locate(folder)[0]]
            gathering = _Gathering(self, min(MAX_FOLDER, self.most), trusted=True)
            gathering.checked = True
            gathering.take_folder(folder, self._guard(repository(root, self._home)))
            collected.files += gathering.found.files
            collected.left_out += gathering.found.left_out
        return collected

    def folders(self, paths: Iterable[str]) -> set[Path]:
        """The folders below the roots that those absolute paths lie in, and the paths themselves, which may be folders.
        Does not read the disk."""
        folders: set[Path] = set()
        for path in map(Path, paths):
            for root in self._workspace.roots:
                if root in path.parents:
                    folders |= {path, *(parent for parent in path.parents if root in parent.parents)}
        return folders

    def absolute(self, name: str) -> Path:
        """The path of a `MemoryFile`."""
        return self._workspace.roots[0] / name

    def name(self, path: Path) -> str:
        """The `MemoryFile.path` of that file. Raises `ToolError`."""
        relative = self._in_roots(path)
        name = str(path) if relative is None or len(self._workspace.roots) > 1 else relative
        if visible(name) != name or '"' in name or "\n" in name:
            raise ToolError("its path contains characters that cannot be shown")
        return name

    def refuse(self, path: Path, guard: PathGuard, *, trusted: bool) -> None:
        """Raises `ToolError` for a file that must not be read without approval."""
        relative = self._in_roots(path)
        inside = guard.locate(path)[1]
        if not trusted and relative is not None and path != self._own:
            raise ToolError("it is in a folder that is not trusted")
        if ".git" in inside.parts:
            raise ToolError("it is one of git's own files")
        if not self._allowed([Subject("read_file", "read", relative or inside.as_posix())]):
            raise ToolError("a rule requires approval before it is read")

    def guard_of_imports(self, path: Path, guard: PathGuard) -> PathGuard:
        """The guard that the imports of that file must pass. A file that the user's own imports from elsewhere may have
        been written by others: it cannot import from their home."""
        if self._own is None or self._own.parent not in guard.roots or self._own.parent in path.parents:
            return guard
        return self._guard(repository(path.parent, self._home))

    def written(self, path: str, beside: Path) -> Path:
        """The path that an import in the file `beside` means, links not followed."""
        if path.startswith("~/"):
            return Path(os.path.normpath(self._home / path[2:]))
        return Path(os.path.normpath(beside.parent / path))

    def _guard(self, top: Path) -> PathGuard:
        return PathGuard([top], self._workspace.guard.private)

    def _in_roots(self, path: Path) -> str | None:
        try:
            return self._workspace.relative(self._workspace.resolve(str(path)))
        except ToolError:
            return None

    def _is_hidden(self, folder: Path) -> bool:
        guard = self._workspace.guard
        if guard.is_private(folder):
            return True
        root_index, relative = guard.locate(folder)
        root_path = guard.roots[root_index]
        try:
            with guard.listing(root_path) as root:
                return is_ignored(root, relative.as_posix(), outer_rules(guard.real(root_path)).rules, is_folder=True)
        except OSError:
            return True


def repository(root: Path, home: Path) -> Path:
    """The folder of the repository the root lies in; without one, the root itself."""
    for folder in (root, *root.parents):
        if folder in (home, folder.parent) or not _is_own(folder):
            break
        if _has_git(folder):
            return folder
    return root


class _Gathering:
    """Takes files until there is no more room (characters)."""

    def __init__(self, files: MemoryFiles, most: int, *, trusted: bool) -> None:
        self.found = MemoryScan()
        self.checked = False
        """What is taken now is the workspace's: it must be as it was trusted."""
        self._files = files
        self._left = most
        self._trusted = trusted
        self._seen: set[Path] = set()
        self._texts: set[str] = set()

    def take_folder(self, folder: Path, guard: PathGuard) -> None:
        for name in NAMES:
            self.take(folder / name, guard)

    def take(self, path: Path, guard: PathGuard, depth: int = 0) -> bool:
        """Take a file and what it imports; equal texts once. Returns False when there is no file that can be taken."""
        if _is_missing(path):
            return False
        try:
            inside = guard.resolve(str(path))
        except ToolError:
            if os.path.lexists(path):
                self._leave_out(str(path), "it leads out of the repository")
            return False
        if inside in self._seen:
            return True
        try:
            text = self._read(inside, guard)
            name = self._files.name(inside)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return False
        except OSError as error:
            self._leave_out(str(path), (error.strerror or "it cannot be read").lower())
            return False
        except ToolError as error:
            self._leave_out(str(path), str(error))
            return False
        self._seen.add(inside)
        self._put(name, inside, text, self._files.guard_of_imports(inside, guard), depth)
        return True

    def _put(self, name: str, path: Path, text: str, guard: PathGuard, depth: int) -> None:
        index, taken = len(self.found.files), 0
        left, self._left = self._left, max(0, self._left - len(text))  # the file comes before its imports
        named = mentions(text)
        for candidates in named if depth < DEPTH else ():
            taken += any(self._import(candidate, path, guard, depth) for candidate in candidates)
        if text in self._texts or not text or (taken == len(named) and merely_mentions(text)):
            self._left += min(len(text), left)
        elif left == 0:
            self._leave_out(str(path), "project memory is full")
        else:
            self._texts.add(text)
            cut_text = text if len(text) <= left else text[:left] + CUT
            self.found.files.insert(index, MemoryFile(name, cut_text))

    def _import(self, named: str, importer: Path, guard: PathGuard, depth: int) -> bool:
        path = self._files.written(named, importer)
        if not any(
            root == path or root in path.parents for root in guard.roots
        ):  # not even looked at: it may be anywhere
            if path.suffix == ".md":
                self._leave_out(f"@{named}", "files there may not be imported")
            return False
        return self.take(path, guard, depth + 1)

    def _read(self, path: Path, guard: PathGuard) -> str:
        if stat.S_ISDIR(path.lstat().st_mode):
            raise IsADirectoryError
        if len(self._seen) >= MAX_FILES:
            raise ToolError(f"there are more than {MAX_FILES} files")
        self._files.refuse(path, guard, trusted=self._trusted)
        try:
            with guard.file(path) as handle, os.fdopen(os.dup(handle), "rb") as file:
                data = file.read(MAX_FILE + 1)
        except ToolError:
            raise ToolError("it is not a regular file") from None
        whole = len(data) <= MAX_FILE
        try:
            text, _ = decode(data if whole else first_lines(data), path)
        except ToolError:
            raise ToolError("it is not a text file") from None
        if text.strip() and self.checked and not self._files.covers(path, data):
            raise ToolError("it has changed since the folder was trusted; `amanu trust show` shows how")
        return framed(text) + ("" if whole else CUT)

    def _leave_out(self, name: str, why: str) -> None:
        sentence = f"{visible(name)} was left out: {why}."
        if sentence not in self.found.left_out:
            self.found.left_out.append(sentence)


def first_lines(data: bytes) -> bytes:
    """At most `MAX_FILE` bytes that end with a line, or at least with a character."""
    end = data.rfind(b"\n", 0, MAX_FILE) + 1 or MAX_FILE
    while end > MAX_FILE - 3 and data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end]


def _is_missing(path: Path) -> bool:
    """Whether nothing at all is there, as with most names that are tried with each prompt: the guard, which finds out
    why something cannot be read, takes ten times as long."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        pass
    return False


def _is_own(folder: Path) -> bool:
    try:
        return not hasattr(os, "getuid") or folder.stat().st_uid == os.getuid()
    except OSError:
        return False


def _has_git(folder: Path) -> bool:
    try:
        mode = (folder / ".git").lstat().st_mode
    except OSError:
        return False
    return stat.S_ISDIR(mode) or stat.S_ISREG(mode)  # a file, where it is a work tree or a submodule
