"""Tier 2: Landlock and the same system call filter, applied by a launcher (`launcher.py`).

It is weaker than namespaces: what is not granted is refused, but nothing can be excepted from a granted folder. So the
whole workspace is writable, and protected files are recorded before and restored afterwards (`command_records.py`).

Rights and versions: landlock(7), linux/landlock.h.
"""

import ctypes
import marshal
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import CodeType

from amanu.core.requirements import SandboxRequirements
from amanu.sandbox.filesystem_view import FilesystemView

START = "import marshal,sys;code,orders=marshal.load(open(int(sys.argv[1]),'rb'));exec(code);os._exit(main(orders))"
"""Starts the compiled launcher. Running its file would compile it anew for each command: 5 ms."""
HOLDERS = 1
"""How many processes of our own surround the command."""
_CREATE_RULESET = 444
_VERSION = 1  # LANDLOCK_CREATE_RULESET_VERSION

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TREE = 0x1FF0  # REMOVE_DIR … MAKE_SYM
_REFER, _TRUNCATE, _DEVICE = 1 << 13, 1 << 14, 1 << 15
_BIND, _CONNECT = 1 << 0, 1 << 1
_ABSTRACT, _SIGNAL = 1 << 0, 1 << 1
READ = _EXECUTE | _READ_FILE | _READ_DIR
WRITE = READ | _WRITE_FILE | _TREE | _REFER | _TRUNCATE | _DEVICE
OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _DEVICE

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")


def version() -> int:
    """The version of Landlock in this kernel; 0 when there is none."""
    abi_version = (
        ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, 0, _VERSION) if sys.platform == "linux" else 0
    )
    return max(0, abi_version)


def handled_rights(version: int, *, network: bool) -> tuple[int, int, int]:
    """The rights that are refused unless granted, for files and for TCP; and the scopes that are closed (signals,
    abstract sockets)."""
    files = READ | _WRITE_FILE | _TREE
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _DEVICE)):
        files |= right if version >= since else 0
    tcp = _BIND | _CONNECT if version >= 4 and not network else 0
    return files, tcp, _ABSTRACT | _SIGNAL if version >= 6 else 0


def refuses_truncation(version: int) -> bool:
    """Whether Landlock refuses to truncate read-only files; otherwise the system call filter must."""
    return version >= 3


def launcher_orders(
    need: SandboxRequirements,
    view: FilesystemView,
    temporary: Path,
    filter: bytes,
    version: int,
    closed: Iterable[Path] = (),
    environment: Mapping[str, str] | None = None,
    inherited: Sequence[int] = (),
) -> bytes:
    """The launcher and its orders, marshalled. `closed` paths cannot be written, and so no file can be created beside
    them: whoever may create files in a folder may replace those in it. `environment`: the command's; None for that of
    the launcher. `inherited`: the descriptors it keeps. Blocking: lists the folders that contain exceptions."""
    files, tcp, scoped = handled_rights(version, network=need.place.reach.network)
    rules: dict[str, int] = {}

    def grant(paths: Iterable[str], rights: int) -> None:
        for path in paths:
            rules[path] = rules.get(path, 0) | rights & files

    # Of `/dev` only the devices named below: it also has terminals, disks and shared memory, some of them the user's.
    grant(_Holes((*view.hidden, *view.secret, Path("/dev"))).around("/"), READ)
    visible = (*view.readable, *(root for root in view.roots if root != Path("/")))
    secret = _Holes(view.secret)
    grant((part for path in visible for part in secret.around(str(path))), READ)
    # Else no folder that contains a secret could be listed. What is in secret folders can be listed, too, but not read.
    grant((str(path) for path in visible if secret.is_below(str(path))), _READ_DIR)
    holes = _Holes({*closed, *view.secret})
    for path in view.writable:
        grant(holes.around(str(path)), WRITE)
    grant([str(temporary)], WRITE)
    grant((f"/dev/{name}" for name in _DEVICES), READ | _WRITE_FILE | _DEVICE)
    orders = {
        "rules": [[path, rights] for path, rights in rules.items()],
        "of_files": OF_FILES,
        "handled": [files, tcp, scoped],
        "version": version,
        "filter": filter,
        "environment": None if environment is None else dict(environment),
        "inherited": sorted(inherited),
    }
    return marshal.dumps((_launcher(), orders))


def command(argv: Sequence[str], spec: int) -> list[str]:
    """The command line that runs `argv` by the `launcher_orders` that can be read from descriptor `spec`."""
    return [sys.executable, "-I", "-S", "-c", START, str(spec), str(os.getpid()), *argv]


@cache
def _launcher() -> CodeType:
    path = Path(__file__).with_name("launcher.py")
    return compile(path.read_bytes(), str(path), "exec", dont_inherit=True, optimize=2)


class _Holes:
    """Paths to leave out of what is granted. As text, since pathlib takes fifty times as long."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._holes = {str(path) for path in paths}
        self._above: set[str] = set()
        for hole in self._holes:
            while (hole := os.path.dirname(hole)) not in self._above:  # noqa: PTH120
                self._above.add(hole)

    def is_below(self, path: str) -> bool:
        """Whether any of the paths left out is below this one."""
        return path in self._above

    def around(self, path: str) -> Iterator[str]:
        """The largest files and folders in `path` that contain none of the paths left out."""
        if path in self._holes:
            return
        if path not in self._above:
            yield path
            return
        try:
            with os.scandir(path) as entries:
                entry_paths = sorted(entry.path for entry in entries if not entry.is_symlink())
        except OSError:
            return
        for entry_path in entry_paths:
            yield from self.around(entry_path)
