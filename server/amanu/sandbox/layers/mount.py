"""Mount the roots of a layer for one command, by an overlay file system in a mount namespace of its own.

The prefix that is built here runs before bubblewrap, in the same process, and becomes it: `unshare` makes the
namespace, a shell opens the roots in it and mounts, and executes bubblewrap. Each root is mounted on a folder of the
layer, which no command sees, and bubblewrap binds that over the root: between the mount and the bind nobody can replace
a name by another. The namespace ends with the command, and the mount with it.

While a root is mounted, a command sees only in part what others do in the workspace: the kernel keeps the names it has
looked up, so a file that is replaced by renaming stays the former one, and no watcher hears of it. The next command
sees all.

A Python program would take 15 ms to start; these take 5 together. From version 0.11 on bubblewrap can mount overlays
itself (`--overlay-src`, `--overlay`): where it can, `prefix` would be empty. Amanu does not use this.
"""

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PLACES = ("/usr/bin", "/bin", "/run/current-system/sw/bin")
"""Only here: what lies elsewhere could be anyone's."""

_SCRIPT = """
set -eu
mount=$1 options=$2
shift 2
while [ "$1" != -- ]; do
  cd -P -- "$1"
  if ! [ . -ef "/proc/self/fd/$2" ]; then
    echo "The folder $1 has been replaced by another one." >&2
    exit 126
  fi
  if ! LIBMOUNT_FORCE_MOUNT2=always "$mount" -inc -t overlay \\
    -o "lowerdir=.,upperdir=$3/upper,workdir=$3/work,$options" overlay "$3/merged"
  then
    echo "The layer could not be mounted." >&2
    exit 126
  fi
  shift 3
done
shift
exec "$@"
"""
"""Arguments: mount's path, options, then for each root its path, its descriptor and its folder in the layer, then `--`
and the command line of bubblewrap.

The root must be opened again in this namespace, because the kernel refuses lower folders of other ones; what is opened
must be the folder that was checked. As the current folder it needs no name, and so no character of its path matters.

New versions of mount have two ways to mount, of which one is tested here: the one that all versions have."""

_OPTIONS = "index=off,metacopy=off,xino=off,redirect_dir=nofollow"
"""Nothing in the upper folder refers to the lower one: it can be read, and changed while it is not mounted."""
_SPECIAL = re.compile(r"[\x00-\x1f\x7f,:\\\"]")
_CAP_SYS_ADMIN = 1 << 21
_ALL_IDS = ["0", "0", "4294967295"]


@dataclass(frozen=True)
class MountWay:
    """How this process may mount an overlay."""

    own_user_namespace: bool
    """As an ordinary user: in a new user namespace, in which one is root, but with no user and group except one's own.
    A file that belongs to another user or group cannot be changed then, and the kernel refuses a root in which
    something else is mounted."""
    opaque_attribute: str
    """The extended attribute of a folder in the upper folder that hides the lower one's content, if it is `y`."""

    @property
    def options(self) -> str:
        return f"{_OPTIONS},userxattr" if self.opaque_attribute.startswith("user.") else _OPTIONS


@dataclass(frozen=True)
class MountPrograms:
    """Paths of the system's programs."""

    unshare: str
    mount: str
    shell: tuple[str, ...]
    """With its options: a bash would take over functions from the environment unless it is told not to."""


@cache
def mount_way() -> MountWay:
    """How this process may mount. Blocking."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    may_mount = os.geteuid() == 0 and bool(int(fields.get("CapEff", "0"), 16) & _CAP_SYS_ADMIN)
    # Only there may `trusted` attributes be written.
    is_first_namespace = Path("/proc/self/uid_map").read_text().split() == _ALL_IDS
    kind = "trusted" if may_mount and is_first_namespace else "user"
    return MountWay(not may_mount, f"{kind}.overlay.opaque")


@cache
def mount_programs() -> MountPrograms | None:
    """The programs that mount, those of the system, which belong to root and can be written by nobody else. None when
    one is missing. Blocking."""
    unshare, mount, shell = (_system_program(name) for name in ("unshare", "mount", "sh"))
    if unshare is None or mount is None or shell is None:
        return None
    is_bash = Path(os.path.realpath(shell)).name == "bash"
    return MountPrograms(unshare, mount, (shell, "-p") if is_bash else (shell,))


def prefix(programs: MountPrograms, way: MountWay, roots: Sequence[tuple[Path, int, Path]]) -> list[str]:
    """The beginning of a command line that ends with bubblewrap's. `roots`: the path of a root, its opened descriptor,
    and its folder in the layer."""
    namespace = ["--user", "--map-root-user", "--mount"] if way.own_user_namespace else ["--mount"]
    triples = [part for root, handle, folder in roots for part in (str(root), str(handle), str(folder))]
    shell = [*programs.shell, "-c", _SCRIPT, "amanu"]
    return [programs.unshare, *namespace, "--", *shell, programs.mount, way.options, *triples, "--"]


def is_mountable(folder: Path) -> bool:
    """Whether that path can stand in the options of a mount."""
    return not _SPECIAL.search(str(folder))


def mounts_below(root: Path) -> list[Path]:
    """Where something else is mounted below that folder. An overlay does not contain that. Blocking."""
    found: dict[Path, None] = {}
    start = f"{root}/".replace("//", "/")
    for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
        place = os.fsdecode(re.sub(rb"\\(\d{3})", lambda octal: bytes([int(octal[1], 8)]), line.split()[4]))
        if place.startswith(start):
            found[Path(place)] = None
    return list(found)


def _system_program(name: str) -> str | None:
    for folder in PLACES:
        try:
            status = os.stat(f"{folder}/{name}")  # noqa: PTH116
        except OSError:
            continue
        if status.st_uid == 0 and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return f"{folder}/{name}"
    return None
