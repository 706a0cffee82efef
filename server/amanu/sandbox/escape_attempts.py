"""Attempts to break out of a sandbox, each made for real. A script of its own, run inside the sandbox as `python -I -S
escape_attempts.py ORDERS`, where ORDERS is JSON of name → [function, argument…]. Prints JSON of name → "done", or why
the attempt failed.

The self-test at start-up (`self_test.py`) and the tests use the same attempts.
"""

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import socket
import subprocess
import sys
import time

_libc = ctypes.CDLL(None, use_errno=True)
_ARM = os.uname().machine == "aarch64"


def spawn() -> None:
    subprocess.run(["/bin/sh", "-c", "exit 0"], check=True)


def write(path: str) -> None:
    with open(path, "a") as file:  # noqa: PTH123
        file.write("acts were here\n")


def change(path: str) -> None:
    """Change an existing file: a new one might only exist inside the sandbox."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.write(handle, b"acts were here\n")
    os.close(handle)


def read(path: str) -> None:
    with open(path, "rb") as file:  # noqa: PTH123
        file.read(1)


def folder(path: str) -> None:
    os.mkdir(path)  # noqa: PTH102


def rename(path: str, target: str) -> None:
    os.rename(path, target)  # noqa: PTH104


def remove(path: str) -> None:
    os.unlink(path)  # noqa: PTH108


def link(path: str, target: str) -> None:
    os.link(path, target)


def chmod(path: str) -> None:
    os.chmod(path, 0o644)  # noqa: PTH101


def git(folder: str, *arguments: str) -> None:
    subprocess.run(["git", "-C", folder, *arguments], check=True, capture_output=True)


def tcp(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
        client.settimeout(2)
        client.connect(("127.0.0.1", port))


def udp(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(("127.0.0.1", port))
        client.send(b"acts were here")
        client.settimeout(0.2)
        client.recv(9)  # refused where nobody listens


def local(path: str) -> None:
    """Connect to a unix socket in the file system; with a leading NUL, in the abstract namespace."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(2)
        client.connect(path)


def serve_local(path: str) -> None:
    """Serve and connect on a unix socket, replacing one that an earlier run left."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(path)
        server.listen()
        client.connect(path)


def vsock() -> None:
    socket.socket(40, socket.SOCK_STREAM).close()  # AF_VSOCK: the host of a virtual machine


def odd_sockets() -> None:
    """Open packet, crypto, Bluetooth, TIPC or XDP sockets: more kernel than a command needs."""
    for family, kind in ((17, 3), (38, 5), (31, 3), (30, 1), (44, 3)):
        with contextlib.suppress(OSError):
            socket.socket(family, kind).close()
            return
    raise OSError(errno.EPERM, "none")


def datagram(path: str) -> None:
    """Send to a unix socket from one end of a socket pair, which does not need the `socket` call."""
    for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
        try:
            mine, peer = socket.socketpair(socket.AF_UNIX, kind)
        except OSError as error:
            last_error = error
            continue
        with mine, peer:
            mine.sendto(b"acts were here", path)
            return
    raise last_error


def serve() -> None:
    """Serve and connect over TCP on the loopback, as test suites do."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as server, socket.socket() as client:
        server.bind(("127.0.0.1", 0))
        server.listen()
        client.connect(server.getsockname())


def signal_(pid: int, started: int | None = None) -> None:
    os.kill(pid, 0)
    _require_same(pid, started)


def see(pid: int, started: int | None = None) -> None:
    read(f"/proc/{pid}/cmdline")
    _require_same(pid, started)


def _require_same(pid: int, started: int | None) -> None:
    """Fail if the process began at another time. In a container the daemon may have the id 1, and so has the first
    process in a sandbox with ids of its own."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            began = int(file.read().rpartition(b")")[2].split()[19])
    except OSError:
        return
    if started not in (None, began):
        raise ProcessLookupError(f"{pid} is another process here")


def environment(pid: int) -> None:
    read(f"/proc/{pid}/environ")


def ptrace() -> None:
    """Trace a process, here a child of its own."""
    child = os.fork()
    if child == 0:
        time.sleep(5)
        os._exit(0)
    try:
        _syscall(117 if _ARM else 101, 0x4206, child, 0, 0)  # PTRACE_SEIZE
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


def remount(path: str) -> None:
    """Remount the root writable, and write to a read-only file."""
    _checked(_libc.mount(b"none", b"/", None, 0x1000 | 0x20, None))  # MS_BIND | MS_REMOUNT
    change(path)


def mount(path: str) -> None:
    _checked(_libc.mount(b"none", path.encode(), b"tmpfs", 0, None))


def namespace() -> None:
    """Create a user namespace, in which one is root: by unshare, clone and clone3."""
    errors: list[OSError] = []
    for attempt in (
        lambda: _checked(_libc.unshare(0x10000000)),
        lambda: _child(_libc.syscall(*((220, 0x10000011, 0, 0, 0, 0) if _ARM else (56, 0x10000011, 0, 0, 0, 0)))),
        lambda: _child(_libc.syscall(435, (ctypes.c_uint64 * 11)(0x10000000, 0, 0, 0, 17), 88)),
    ):
        try:
            attempt()
        except OSError as error:
            errors.append(error)
    if len(errors) == 3:
        raise errors[0]


def kernel_setting() -> None:
    with open("/proc/sys/kernel/core_pattern", "r+b"):  # noqa: PTH123
        pass


def io_uring() -> None:
    os.close(_syscall(425, 4, (ctypes.c_uint32 * 30)()))


def keyring() -> None:
    _syscall(219 if _ARM else 250, 0, -3, 1)  # KEYCTL_GET_KEYRING_ID, session


def type_ahead() -> None:
    """Type into a terminal."""
    master, slave = os.openpty()
    try:
        fcntl.ioctl(slave, 0x5412, b"x")  # TIOCSTI
    finally:
        os.close(master)
        os.close(slave)


def handles() -> None:
    """Find inherited file descriptors: through an open folder one can leave any namespace."""
    others: list[int] = []
    for number in range(3, 256):
        try:
            os.fstat(number)
            others.append(number)
        except OSError:
            continue
    if not others:
        raise OSError(errno.EBADF, "none")


def outlive(path: str) -> None:
    """Leave the command, its session and its group, and keep writing for a minute after it has ended. Holds no stream
    open."""
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    nothing = os.open("/dev/null", os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    os.environ.clear()
    for _ in range(3_000):
        time.sleep(0.02)
        write(path)
    os._exit(0)


def truncate(path: str) -> None:
    """Truncate a file without opening it for writing."""
    with contextlib.suppress(OSError):
        os.truncate(path, 0)
        return
    os.close(os.open(path, os.O_RDONLY | os.O_TRUNC))


def terminal(path: str) -> None:
    """Open a terminal to read what is typed."""
    os.close(os.open(path, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK))


def disk() -> None:
    """Read a disk device directly, bypassing all file permissions."""
    for name in sorted(os.listdir("/sys/class/block")):  # noqa: PTH208
        with contextlib.suppress(OSError):
            read(f"/dev/{name}")
            return
    raise OSError(errno.EACCES, "none")


def limits(pid: int) -> None:
    """Set another process's resource limits, here to their current values; lower ones could end it."""
    call, current_limits = 261 if _ARM else 302, (ctypes.c_uint64 * 2)()
    _syscall(call, pid, 7, None, ctypes.byref(current_limits))  # RLIMIT_NOFILE
    _syscall(call, pid, 7, ctypes.byref(current_limits), None)


def shared_memory(key: int) -> None:
    """Open a shared memory segment by its key, as X11 and databases use them."""
    _syscall(194 if _ARM else 29, key, 0, 0)


def shared_queue(name: str) -> None:
    os.close(_syscall(180 if _ARM else 240, name.encode(), os.O_RDONLY, 0, 0))


def other_memory(pid: int) -> None:
    """Read another process's memory, by every interface there is."""
    local_buffer, remote_buffer = (ctypes.c_uint64 * 2)(id(pid), 1), (ctypes.c_uint64 * 2)(id(pid), 1)
    for call in (270, 271) if _ARM else (310, 311):
        if _libc.syscall(call, pid, local_buffer, 1, remote_buffer, 1, 0) >= 0 or ctypes.get_errno() == errno.EFAULT:
            return
    for name, how in (("mem", os.O_RDONLY), ("maps", os.O_RDONLY), ("clear_refs", os.O_WRONLY)):
        with contextlib.suppress(OSError):
            handle = os.open(f"/proc/{pid}/{name}", how)
            os.close(handle)
            return
    raise OSError(errno.EPERM, "none")


def other_files(pid: int) -> None:
    """Reach another process's files, through its root, its folder or its descriptors."""
    for name in ("root", "cwd", "fd/0", "fd/1", "exe"):
        with contextlib.suppress(OSError):
            os.stat(f"/proc/{pid}/{name}")  # noqa: PTH116
            return
    handle = _syscall(434, pid, 0)  # pidfd_open
    try:
        os.close(_syscall(438, handle, 0, 0))  # pidfd_getfd
    finally:
        os.close(handle)


def mount_anew(path: str) -> None:
    """Mount with the system calls added in Linux 5."""
    tree = _libc.syscall(428, -100, path.encode(), 1)  # open_tree, OPEN_TREE_CLONE
    if tree < 0:
        tree = _syscall(430, b"tmpfs", 0)  # fsopen
    os.close(tree)


def chroot(path: str) -> None:
    os.chroot(path)


def kernel_programs() -> None:
    """Call bpf, perf_event_open and userfaultfd, the kernel interfaces with the most exploits."""
    attributes = (ctypes.c_uint32 * 32)()
    attributes[1] = 128
    for call in (
        (280 if _ARM else 321, 5, attributes, 128),
        (241 if _ARM else 298, attributes, 0, -1, -1, 0),
        (282 if _ARM else 323, 1),
    ):
        handle = _libc.syscall(*call)
        if handle >= 0:
            os.close(handle)
            return
        if ctypes.get_errno() not in (errno.EPERM, errno.EACCES, errno.ENOSYS):
            return
    raise OSError(errno.EPERM, "none")


def gain() -> None:
    """Check whether setuid programs could gain privileges."""
    if _checked(_libc.prctl(39, 0, 0, 0, 0)) == 1:  # PR_GET_NO_NEW_PRIVS
        raise OSError(errno.EPERM, "no new privileges")


def _child(pid: int) -> None:
    if pid == 0:
        os._exit(0)
    _checked(pid)
    os.waitpid(pid, 0)


def _syscall(*arguments: object) -> int:
    return _checked(_libc.syscall(*arguments))


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _attempt(act: str, arguments: "list[object]") -> str:
    try:
        globals()[act](*arguments)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error)) if error.errno else type(error).__name__
    except subprocess.SubprocessError:
        return "failed"
    return "done"


if __name__ == "__main__":
    print(json.dumps({name: _attempt(act, arguments) for name, (act, *arguments) in json.loads(sys.argv[1]).items()}))
