"""Run a command behind Landlock and a system call filter.

A program of its own, since the daemon has threads and must do nothing between fork and exec: `python -I -S -c START
HANDLE PARENT PROGRAM ARGUMENT…`. From HANDLE, `landlock.START` reads this file, compiled, and its orders
(`landlock.launcher_orders`).

Every import delays each command: `signal` takes 5 ms for its enums, so `_signal` is used; `json`, `contextlib` or
`typing` would take as long.

It stays outside the sandbox as the subreaper of everything the command starts: orphaned processes become its children,
and are killed when the command has ended or the daemon is gone (even by SIGKILL).
"""

# ruff: noqa: SIM105
import ctypes
import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any
else:
    import _signal as signal

_libc = ctypes.CDLL(None, use_errno=True)
_PDEATHSIG, _SUBREAPER, _NO_NEW_PRIVS, _SECCOMP, _CAPBSET_DROP = 1, 36, 38, 22, 24
_CREATE, _ADD, _RESTRICT = 444, 445, 446  # landlock; the same numbers on every architecture
_GONE = signal.SIGUSR1
"""Sent when our parent is gone. SIGTERM is not used: it is meant for the command, and is sent to every process."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("tcp", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("folder", ctypes.c_int32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def main(orders: "dict[str, Any]") -> int:
    parent, *argv = sys.argv[2:]
    _call("prctl", _SUBREAPER, 1, 0, 0, 0)
    signal.signal(_GONE, _on_parent_gone)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _call("prctl", _PDEATHSIG, int(_GONE), 0, 0, 0)
    if os.getppid() != int(parent):
        return 1
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(_GONE, signal.SIG_DFL)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            _close(orders)
            os.execvpe(argv[0], argv, os.environ if orders["environment"] is None else orders["environment"])
        except BaseException as error:
            os.write(2, f"The sandbox could not be set up: {error}\n".encode())
        os._exit(126)
    for standard in (0, 1, 2):
        os.close(standard)
    while True:
        pid, status = os.wait()
        if pid == child:
            break
    _end_all()
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            pass  # SIGKILL has its default action already
        os.kill(os.getpid(), number)
    return os.waitstatus_to_exitcode(status)


def _on_parent_gone(number: int, frame: object) -> None:
    _end_all()
    os._exit(1)


def _close(orders: "dict[str, Any]") -> None:
    """Apply the sandbox to this process, irrevocably."""
    first = 3
    for kept in orders["inherited"]:
        os.closerange(first, kept)
        first = kept + 1
    os.closerange(first, os.sysconf("SC_OPEN_MAX") if os.sysconf("SC_OPEN_MAX") < 1 << 16 else 1 << 16)
    if os.geteuid() == 0:
        for capability in range(64):
            _libc.prctl(_CAPBSET_DROP, capability, 0, 0, 0)
        header = _Header(0x20080522, 0)
        _call("capset", ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))
    _call("prctl", _NO_NEW_PRIVS, 1, 0, 0, 0)
    files, tcp, scoped = orders["handled"]
    attributes = _Ruleset(files, tcp, scoped)
    size = 24 if orders["version"] >= 6 else 16 if orders["version"] >= 4 else 8
    rules = _call("syscall", _CREATE, ctypes.byref(attributes), ctypes.c_size_t(size), 0)
    for path, rights in orders["rules"]:
        try:
            handle = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue  # gone since
        mode = os.fstat(handle).st_mode
        allowed = rights if stat.S_ISDIR(mode) else rights & orders["of_files"]
        if allowed and not stat.S_ISLNK(mode):
            _call("syscall", _ADD, rules, 1, ctypes.byref(_Beneath(allowed, handle)), 0)
        os.close(handle)
    _call("syscall", _RESTRICT, rules, 0)
    os.close(rules)
    code = orders["filter"]
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    _call("prctl", _SECCOMP, 2, ctypes.byref(program), 0, 0)


def _end_all() -> None:
    """Kill all our descendants, until there are none; orphaned ones become our children."""
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for pid in _descendants():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass  # gone
        try:
            os.waitpid(-1, 0)
        except OSError:
            pass  # none is left


def _descendants() -> "list[int]":
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                pass  # gone
    tree = {os.getpid()}
    grown = True
    while grown:
        below = {pid for pid, parent in parents.items() if parent in tree} - tree
        tree |= below
        grown = bool(below)
    return [pid for pid in tree if pid != os.getpid()]


def _call(name: str, *arguments: object) -> int:
    result = getattr(_libc, name)(*arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result
