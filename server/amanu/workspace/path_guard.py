"""The path guard: the only way from a path somebody wrote to a file of the workspace.

A path is made canonical first (symlinks followed, `..` resolved) and must then lie in a root, component by
component. Later it is opened *beneath that root's handle, following no link at all*: whoever swaps a link in
between is refused, not followed. Nothing else of ours opens workspace files by name.

Amanu's own folders (keys, rules, sessions, trust) are in no workspace, also when a root lies around them: who opens
their home folder has not asked an agent to read `auth.json` or to write `rules.toml`. Two files there are admitted: the
session's plan, to whoever names it, and the user's own memory, to the tool that proposes edits of it: no path that
somebody wrote leads there. Folders of active skills are admitted, too, wherever they are, but only to be read.
"""

import contextlib
import ctypes
import errno
import os
import re
import stat
import unicodedata
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from urllib.parse import unquote

from amanu.core.tool import ToolError

_FILE = re.compile(r"file:(//(localhost(?=/))?)?(?=[^/]|/)", re.IGNORECASE)
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "<": ">"}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_SYS_OPENAT2 = 437  # the same number on every Linux architecture
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
_UNAVAILABLE = {errno.ENOSYS, errno.EPERM, errno.E2BIG, errno.EINVAL}
_LONGEST = 4096  # PATH_MAX
_HANDLE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_FOLDER = "{path} is a folder. Use list_directory to see what is in it."


class PathGuard:
    """Roots of a session and the paths inside them; `private` are folders that are in no workspace, `plan` and `memory`
    the files that are admitted besides; `kept_at`: where the roots are, if they are not in their places yet. Stateless
    apart from these and `admit_folder`; safe in threads."""

    def __init__(
        self,
        roots: Sequence[Path],
        private: Sequence[Path] = (),
        plan: Path | None = None,
        memory: Path | None = None,
        kept_at: Sequence[Path] = (),
    ) -> None:
        self.roots = tuple(Path(os.path.abspath(root)) for root in roots)  # noqa: PTH100
        self.real_roots = tuple(Path(os.path.realpath(root)) for root in kept_at or self.roots)
        self.private = tuple(private)
        self.plan = plan and Path(os.path.realpath(plan.parent)) / plan.name
        self.memory = memory and Path(os.path.realpath(memory.parent)) / memory.name
        self._admitted = tuple(file for file in (self.plan, self.memory) if file is not None)
        self._private = tuple({os.path.realpath(path).casefold() for path in private})
        self._readable: tuple[Path, ...] = ()
        """Folders outside of the roots that may be read, by their real paths."""

    def admit_folder(self, folder: Path) -> None:
        """From now on `resolve_to_read` leads into that folder, too, unless one of Amanu's own lies in it: a link to a
        home folder opens no home folder."""
        real = Path(os.path.realpath(folder))
        folded = str(real).casefold()
        if real not in self._readable and not any(_is_in(path, folded) for path in self._private):
            self._readable = (*self._readable, real)

    def resolve_to_read(self, path: str) -> Path:
        """Like `resolve`, for a path that is only read: one in an admitted folder is its real path."""
        if self._readable and Path(path).is_absolute() and "\0" not in path and len(path) <= _LONGEST:
            real = Path(os.path.realpath(path))
            if self._readable_folder(real) is not None:
                _require_utf8(str(real))
                return real
        return self.resolve(path)

    @property
    def readable_folders(self) -> tuple[Path, ...]:
        """The admitted folders, by their real paths."""
        return self._readable

    def is_only_readable(self, path: Path) -> bool:
        """Whether a resolved path lies in an admitted folder, and no tool may write there."""
        return self._readable_folder(path) is not None and self.inside(path) is None

    def _readable_folder(self, path: Path) -> Path | None:
        return next((folder for folder in self._readable if folder in path.parents), None)

    def resolve(self, path: str) -> Path:
        """The absolute path meant by `path` (absolute, or relative to a root), links in it followed. It need
        not exist. Raises `ToolError` for what is outside the roots or no path at all."""
        if not path.strip():
            raise ToolError("The path is empty. Give a path relative to the workspace root.")
        path = without_file_scheme(path)
        if "\0" in path:
            raise ToolError("The path holds a NUL character; no file can have that name.")
        if _SCHEME.match(path):
            raise ToolError(f"{path!r} is a URI. Give a file path relative to the workspace root.")
        if len(path) > _LONGEST:
            raise ToolError("The path is longer than any path can be.")
        _require_utf8(path)
        if self.plan is not None and Path(path).is_absolute() and os.path.realpath(path) == str(self.plan):
            return self.plan
        inside_paths = self._insides(path)
        existing = self._existing(inside_paths) or self._existing_otherwise(path)
        if not inside_paths and not existing:
            roots = ", ".join(str(root) for root in self.roots)
            raise ToolError(
                f"{path} is outside the workspace ({roots}).",
                "Use a path inside it: commands can save or copy files there.",
            )
        if len(existing) > 1:
            raise ToolError(f"{path} exists in several roots. Give one of: {', '.join(map(str, existing))}.")
        inside = existing[0] if existing else self._new(path, inside_paths[0])
        _require_utf8(str(inside))  # a link may lead to such a name
        if self.is_private(inside):
            raise ToolError(
                f"{path} is in a folder of Amanu itself, where its keys, rules and sessions are. No tool reads or "
                "changes anything there; the user can, outside of Amanu."
            )
        return inside

    def _insides(self, path: str) -> list[Path]:
        """The places in the roots where a path may lead, links in it followed."""
        candidates = [Path(path)] if Path(path).is_absolute() else self._spellings(path)
        return [inside for candidate in candidates if (inside := self._inside(candidate)) is not None]

    def _existing(self, paths: Sequence[Path]) -> list[Path]:
        return list(dict.fromkeys(path for path in paths if os.path.lexists(self.real(path))))

    def _existing_otherwise(self, path: str) -> list[Path]:
        """The files that a path names which names nothing as it is written: without quotes and blanks around it, with
        `/` for `\\`, in another Unicode normal form."""
        spellings = _other_spellings(path)
        found = (self._existing(self._insides(spelling)) for spelling in spellings)
        in_form = (
            self._existing([self._in_folder_as_spelt(inside) for inside in self._insides(spelling)])
            for spelling in (path, *spellings)
            if _has_forms(spelling)
        )
        return next((paths for paths in chain(found, in_form) if paths), list[Path]())

    def _new(self, path: str, inside: Path) -> Path:
        """The place where a file would be made that nothing is like; `inside`: by the path as it is written."""
        plain = bare(path).replace("\\", "/")
        if plain != path:
            # `Path.is_dir` fails for names that are too long
            folders = [other for other in self._insides(plain) if os.path.isdir(self.real(other.parent))]  # noqa: PTH112
            inside = folders[0] if folders else inside
        return self._in_folder_as_spelt(inside)

    def _in_folder_as_spelt(self, path: Path) -> Path:
        """A resolved path, of which nothing need exist, with the names that the folders on the disk have in another
        Unicode normal form."""
        index, relative = self.locate(path)
        if not _has_forms(str(relative)):
            return path
        spelt = self.roots[index]
        for at, name in enumerate(relative.parts):
            if not os.path.lexists(self.real(spelt / name)) and _has_forms(name):
                try:
                    with self.listing(spelt) as folder:
                        names = sorted(os.listdir(folder))  # noqa: PTH208 (of a handle)
                except OSError:
                    return spelt.joinpath(*relative.parts[at:])
                name = next((other for other in names if _form(other) == _form(name)), name)
            inside = self._inside(spelt / name)  # a name in another form may be a link
            if inside is None or self.is_private(inside):
                return path
            spelt = inside
        return spelt

    def inside(self, path: Path) -> Path | None:
        """The resolved path of any absolute path, links in it followed; None when it leads outside the roots or into
        one of Amanu's own folders."""
        inside = self._inside(path)
        return None if inside is None or self.is_private(inside) else inside

    def _inside(self, path: Path) -> Path | None:
        real = os.path.realpath(path)
        # `loop/../link`: past a loop, links are left as they are
        if real != str(path) and os.path.realpath(real) != real:
            return None
        inside = [(len(root.parts), index) for index, root in enumerate(self.real_roots) if _is_in(real, str(root))]
        if not inside:
            return None
        root_index = max(inside)[1]
        return self.roots[root_index] / Path(real).relative_to(self.real_roots[root_index])

    def locate(self, path: Path) -> tuple[int, Path]:
        """(index of its root, path relative to it) of a resolved path. An admitted file lies in a root of its own,
        after the others; its folder does not. Admitted folders are the last roots."""
        if path in self._admitted:
            return len(self.roots) + self._admitted.index(path), Path(path.name)
        name = str(path)
        inside = [(len(root.parts), index) for index, root in enumerate(self.roots) if _is_in(name, str(root))]
        if not inside:
            for at, folder in enumerate(self._readable):
                if _is_in(name, str(folder)):
                    return len(self.roots) + len(self._admitted) + at, path.relative_to(folder)
            raise ToolError(f"{path} is outside the workspace.")
        root_index = max(inside)[1]
        return root_index, path.relative_to(self.roots[root_index])

    def real(self, path: Path) -> Path:
        """A resolved path below the real folder of its root. For showing and comparing, not for opening."""
        index, relative = self.locate(path)
        return self._real_root(index) / relative

    def is_plan(self, path: Path) -> bool:
        """Whether a resolved path is the session's plan."""
        return path == self.plan

    def is_admitted(self, path: Path) -> bool:
        """Whether it is a file that is in no root: the session's plan or the user's own memory."""
        return path in self._admitted

    def is_private(self, path: Path) -> bool:
        """Whether a resolved path is one of Amanu's own folders, or in one. Case never counts: on some systems it is
        the same file."""
        if self.is_plan(path):
            return False
        real = str(self.real(path)).casefold()
        return any(_is_in(real, folder) for folder in self._private)

    def private_below(self, folder: Path) -> list[str]:
        """Amanu's own folders in the root of a resolved folder, relative to it and in lower case: searches leave them
        out."""
        index, _ = self.locate(folder)
        real = str(self._real_root(index)).casefold()
        below = [private for private in self._private if private != real and _is_in(private, real)]
        return [Path(private).relative_to(real).as_posix() for private in below]

    def same(self, path: Path, other: Path) -> bool:
        """Whether `other`, spelt in any way, is the file at the resolved `path`."""
        return path == other or os.path.realpath(other) == str(self.real(path))

    @contextmanager
    def folder(self, path: Path, *, create: bool = False) -> Generator[int]:
        """A handle of the folder at a resolved path, opened without following any link; for `dir_fd=`.

        Raises `OSError`: ENOENT, ENOTDIR, ELOOP (a link was put in its way) …"""
        if any(path == admitted.parent for admitted in self._admitted):
            real_root, relative = path, Path()
        else:
            index, relative = self.locate(path)
            real_root = self._real_root(index)
        root = os.open(real_root, _HANDLE)
        try:
            handle = self._descend(root, relative.parts, create)
        finally:
            os.close(root)
        try:
            yield handle
        finally:
            os.close(handle)

    @contextmanager
    def listing(self, path: Path) -> Generator[int]:
        """Like `folder`, a handle that can also be listed (`os.scandir`) and synced."""
        with self.folder(path) as folder:
            handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
            try:
                yield handle
            finally:
                os.close(handle)

    @contextmanager
    def file(self, path: Path, flags: int = os.O_RDONLY) -> Generator[int]:
        """A handle of the regular file at a resolved path. Raises `OSError`, or `ToolError` for what is not a
        regular file: devices and FIFOs are not even opened."""
        if path in self.roots:  # what it is in is none of ours
            raise ToolError(_FOLDER.format(path=path))
        with self.folder(path.parent) as folder:
            require_regular_file(os.stat(path.name, dir_fd=folder, follow_symlinks=False), path)
            extra = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            handle = os.open(path.name, flags | extra, dir_fd=folder)
            try:
                require_regular_file(os.fstat(handle), path)
                yield handle
            finally:
                os.close(handle)

    def _real_root(self, index: int) -> Path:
        return (*self.real_roots, *(admitted.parent for admitted in self._admitted), *self._readable)[index]

    def _spellings(self, path: str) -> list[Path]:
        """What a relative path may mean: below each root, or starting with the name of one of several."""
        below = [root / path for root in self.roots]
        parts = Path(path).parts
        if len(below) == 1 or not parts:
            return below
        return [root.joinpath(*parts[1:]) for root in self.roots if root.name == parts[0]] + below

    def _descend(self, root: int, parts: Sequence[str], create: bool) -> int:
        if not parts:
            return os.dup(root)
        if not create:
            handle = _openat2(root, "/".join(parts))
            if handle is not None:
                return handle
        descriptor = os.dup(root)
        for part in parts:
            try:
                below = _open_folder(descriptor, part, create)
            finally:
                os.close(descriptor)
            descriptor = below
        return descriptor


def without_file_scheme(path: str) -> str:
    """`file:///src/a%20b.py` → `/src/a b.py`."""
    if not _FILE.match(path.strip()):
        return path
    return unquote(_FILE.sub("", path.strip(), count=1))


def _other_spellings(path: str) -> list[str]:
    """The same path as models and people also write it."""
    plain = bare(path)
    named = plain.removeprefix("@")
    unescaped = re.sub(r"\\([^\w\\/])", r"\1", named)
    spellings = (plain, without_file_scheme(plain), named, unescaped, named.replace("\\", "/"))
    return [spelling for spelling in dict.fromkeys(spellings) if spelling not in ("", path) and "\0" not in spelling]


def bare(path: str) -> str:
    """The path without blanks and quotes around it."""
    plain = path.strip()
    while len(plain) > 2 and plain[0] in _QUOTES and plain[-1] == _QUOTES[plain[0]]:
        plain = plain[1:-1].strip()
    return plain or path


def _has_forms(name: str) -> bool:
    """Whether there may be other forms of the name that look the same."""
    return not name.isascii() or " " in name


def _form(name: str) -> str:
    """Equal for names that look the same: composed or decomposed, with blanks that do not break."""
    return unicodedata.normalize("NFC", name).replace("\u202f", " ").replace("\xa0", " ")


def _is_in(path: str, folder: str) -> bool:
    """Whether an absolute, normalized path is the folder or below it. On text, for `Path.parents` takes ten times as
    long and each prompt and each call asks this often."""
    if os.name == "nt":
        path, folder = os.path.normcase(path), os.path.normcase(folder)
    return path == folder or path.startswith(folder if folder.endswith(os.sep) else folder + os.sep)


def require_regular_file(status: os.stat_result, path: Path) -> None:
    """Raise `ToolError` unless it is a regular file, `OSError` ELOOP for a link."""
    mode = status.st_mode
    if stat.S_ISREG(mode):
        return
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, "a symbolic link that leads nowhere or was just put there", str(path))
    if stat.S_ISDIR(mode):
        raise ToolError(_FOLDER.format(path=path))
    raise ToolError(f"{path} is a device, socket or pipe, not a file; it cannot be read or written.")


def _require_utf8(path: str) -> None:
    """Half surrogate pairs, also those that stand for bytes which are no UTF-8, break JSON, records and clients."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise ToolError("The path holds characters that are no valid UTF-8; only commands can use it.") from None


def _open_folder(folder: int, name: str, create: bool) -> int:
    try:
        return os.open(name, _HANDLE | os.O_NOFOLLOW, dir_fd=folder)
    except FileNotFoundError:
        if not create:
            raise
    with contextlib.suppress(FileExistsError):  # somebody else made it just now: the open below decides
        os.mkdir(name, dir_fd=folder)
    return os.open(name, _HANDLE | os.O_NOFOLLOW, dir_fd=folder)


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def _openat2(folder: int, relative: str) -> int | None:
    """A handle of the folder at `relative`, resolved in the kernel; None where the call is not available."""
    global _libc
    if _libc is None:
        return None
    how = _How(_HANDLE, 0, _BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS)
    handle = _libc.syscall(
        ctypes.c_long(_SYS_OPENAT2),
        ctypes.c_int(folder),
        ctypes.c_char_p(os.fsencode(relative)),
        ctypes.byref(how),
        ctypes.c_size_t(ctypes.sizeof(how)),
    )
    if handle >= 0:
        return handle
    code = ctypes.get_errno()
    if code in _UNAVAILABLE:
        _libc = None
        return None
    raise OSError(code, os.strerror(code), relative)


_libc = ctypes.CDLL(None, use_errno=True) if hasattr(os, "O_PATH") else None
