"""The process that a test starts and waits for in place of a warm one: `python -I -S warm_stand_in.py SOCKET COMMAND…`.

It has the process forked, hands on its own files, environment, folder and signals, and ends as that one ends. When it
is killed, so is the other. If the interpreter cannot stand for the command, it becomes the command. Only what is built
into the interpreter is imported: the start of this is what a test waits for.
"""

# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportPrivateUsage=false

import _signal as signal
import _socket as socket
import marshal
import posix
import sys

HANDED_ON = (
    *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM),
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH, signal.SIGCONT),
)


def main(path: str, command: list[str]) -> int:
    signal.pthread_sigmask(signal.SIG_BLOCK, HANDED_ON)  # until we know to whom
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0)
    files = [int(name) for name in posix.listdir("/proc/self/fd")]
    files = [number for number in files if number != link.fileno() and _is_open(number)]
    if not _asked(link, path, command, files):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDED_ON)
        posix.execv(command[0], command)
    for number in HANDED_ON:
        signal.signal(number, lambda number, _: link.send(bytes([number])))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDED_ON)
    for number in files:
        posix.close(number)
    ended = b""
    while len(ended) < 4:
        if not (more := link.recv(4)):
            return 255  # the interpreter is gone
        ended += more
    status = int.from_bytes(ended, "big")
    if posix.WIFSIGNALED(status):
        number = posix.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        posix.kill(posix.getpid(), number)
    return posix.WEXITSTATUS(status)


def _asked(link: socket.socket, path: str, command: list[str], files: list[int]) -> bool:
    """Whether a process was forked for the command."""
    try:
        link.connect(path)
        umask = posix.umask(0o77)
        posix.umask(umask)
        here = posix.open(".", posix.O_RDONLY | posix.O_CLOEXEC)
        leads = posix.getsid(0) == posix.getpid()
        body = marshal.dumps((command, dict(posix.environ), files, umask, leads))
        numbers = b"".join(number.to_bytes(4, sys.byteorder) for number in (here, *files))
        link.sendmsg([len(body).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)])
        rest = memoryview(body)
        while rest:
            rest = rest[link.send(rest) :]
        posix.close(here)
        return link.recv(1) == b"1"
    except OSError:
        return False


def _is_open(number: int) -> bool:
    """The listing's own file is not, any more."""
    try:
        posix.fstat(number)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    posix._exit(main(sys.argv[1], sys.argv[2:]))
