"""The sandbox on macOS: a profile for `sandbox-exec`, in which the last matching rule wins. It is weaker than
namespaces: processes are found by their group only, and system services can be reached. The self-test tells what it
prevents.

Source: the profiles in `/usr/share/sandbox` of macOS, sandbox-exec(1).
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from amanu.core import protected_paths as protected
from amanu.core.requirements import SandboxRequirements
from amanu.sandbox.filesystem_view import FilesystemView

PROGRAM = Path("/usr/bin/sandbox-exec")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper")
_STARTS_OTHERS = ("/usr/bin/open", "/usr/bin/osascript", "/bin/launchctl", "/usr/bin/at", "/usr/bin/crontab")
"""Programs that start others outside the sandbox."""


def command(argv: Sequence[str], need: SandboxRequirements, view: FilesystemView, temporary: Path) -> list[str]:
    """The command line that runs `argv` in this sandbox."""
    return [str(PROGRAM), "-p", profile(need, view, temporary), *argv]


def profile(need: SandboxRequirements, view: FilesystemView, temporary: Path) -> str:
    """The profile's text."""
    visible = (*view.readable, *view.roots, *view.writable, temporary)
    lines = [
        "(version 1)",
        "(allow default)",
        "(deny signal (target others))",
        "(deny process-info* (target others))",
        "(deny appleevent-send)",
        *_rule("deny process-exec", "literal", _STARTS_OTHERS),
        *_rule("deny file-read*", "subpath", view.hidden),
        *_rule("allow file-read-metadata", "subpath", view.hidden),
        *_rule("allow file-read*", "subpath", visible),
        "(deny file-write*)",
        *_rule("allow file-write*", "literal", _DEVICES),
        *_rule("allow file-write*", "subpath", (temporary, *view.writable)),
        *_rule("deny file-write*", "subpath", (*view.read_only, *_absent(view))),
        *_rule("deny file-read* file-write*", "subpath", view.secret),
    ]
    if not need.place.reach.network:
        lines += [
            "(deny network*)",
            '(allow network* (local ip "localhost:*"))',
            "(deny network-outbound (remote unix))",
        ]
    return "\n".join(lines)


def _absent(view: FilesystemView) -> list[Path]:
    """Where protected files would appear at the top of the writable roots."""
    names = (*protected.FOLDERS, protected.AMANU_FOLDER, *protected.FILES, *protected.PATHS, *protected.SHELL_FILES)
    tops = [root for root in view.roots if root in view.writable]
    return [top / name for top in tops for name in names if name not in (".git", ".gitmodules")]


def _rule(act: str, how: str, paths: Iterable[Path | str]) -> list[str]:
    filters = " ".join(f"({how} {_quoted(str(path))})" for path in dict.fromkeys(paths))
    return [f"({act} {filters})"] if filters else []


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
