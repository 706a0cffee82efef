"""The filter for system calls that a sandboxed command must not make, as a BPF program for the kernel. bubblewrap or
our launcher loads it. Refused calls fail with EPERM; `clone3` fails with ENOSYS, so that programs fall back to `clone`,
whose flags a filter can check.

Sources: seccomp(2), linux/audit.h, linux/filter.h; numbers from the kernel's tables for x86_64 and for arm64 (generic).
"""

import errno
import os
import platform
import socket
import stat
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_AND = 0x54  # BPF_ALU | BPF_AND | BPF_K
_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_RETURN = 0x06  # BPF_RET | BPF_K
_ALLOW = 0x7FFF0000  # SECCOMP_RET_ALLOW
_ERRNO = 0x00050000  # SECCOMP_RET_ERRNO
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_X32 = 0x40000000

_NEW_NAMESPACES = 0x7E020080  # every CLONE_NEW* flag
_SEQUENCES = (socket.SOCK_STREAM, socket.SOCK_SEQPACKET)
_KIND = 0xF  # mask of a socket's type; the bits above are flags
_CUTTING = (os.O_TRUNC | os.O_RDONLY, os.O_TRUNC | os.O_ACCMODE)
"""Open flags that truncate a file without opening it for writing; the second is Linux's access mode 3, for neither
reading nor writing (open(2))."""
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C  # type into the terminal · its ancient relative


@dataclass(frozen=True)
class _Machine:
    arch: int
    """AUDIT_ARCH_*."""
    numbers: dict[str, int]
    x32: bool = False


# Same numbers on both machines, since Linux 5.0.
_COMMON = {
    "pidfd_getfd": 438, "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432,
    "fspick": 433, "mount_setattr": 442, "open_tree_attr": 467, "io_uring_setup": 425, "io_uring_enter": 426,
    "io_uring_register": 427, "clone3": 435, "fchmodat2": 452,
}  # fmt: skip
_MACHINES = {
    "x86_64": _Machine(
        0xC000003E,
        {
            **_COMMON, "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "ptrace": 101,
            "process_vm_readv": 310, "process_vm_writev": 311, "bpf": 321, "keyctl": 250, "add_key": 248,
            "request_key": 249, "userfaultfd": 323, "perf_event_open": 298, "kexec_load": 246, "kexec_file_load": 320,
            "open_by_handle_at": 304, "init_module": 175, "finit_module": 313, "delete_module": 176, "setns": 308,
            "unshare": 272, "clone": 56, "ioctl": 16, "socket": 41,
            "socketpair": 53, "prlimit64": 302, "shmget": 29, "shmat": 30, "shmctl": 31, "semget": 64, "semop": 65,
            "semctl": 66, "semtimedop": 220, "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71, "mq_open": 240,
            "mq_unlink": 241, "truncate": 76, "open": 2, "openat": 257, "openat2": 437, "creat": 85, "mknod": 133,
            "mknodat": 259, "chmod": 90, "fchmod": 91, "fchmodat": 268, "chown": 92, "fchown": 93, "lchown": 94,
            "fchownat": 260,
        },
        x32=True,
    ),
    "aarch64": _Machine(
        0xC00000B7,
        {
            **_COMMON, "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51, "ptrace": 117,
            "process_vm_readv": 270, "process_vm_writev": 271, "bpf": 280, "keyctl": 219, "add_key": 217,
            "request_key": 218, "userfaultfd": 282, "perf_event_open": 241, "kexec_load": 104, "kexec_file_load": 294,
            "open_by_handle_at": 265, "init_module": 105, "finit_module": 273, "delete_module": 106, "setns": 268,
            "unshare": 97, "clone": 220, "ioctl": 29, "socket": 198,
            "socketpair": 199, "prlimit64": 261, "shmget": 194, "shmat": 196, "shmctl": 195, "semget": 190,
            "semop": 193, "semctl": 191, "semtimedop": 192, "msgget": 186, "msgsnd": 189, "msgrcv": 188, "msgctl": 187,
            "mq_open": 180, "mq_unlink": 181, "truncate": 45, "openat": 56, "openat2": 437, "mknodat": 33,
            "fchmod": 52, "fchmodat": 53, "fchown": 55, "fchownat": 54,
        },
    ),
}  # fmt: skip
_LOOKED_AT = {"unshare", "clone", "clone3", "ioctl", "socket", "socketpair"}
"""Calls that are refused only for some arguments. Calls in no set like this one are always refused."""
_SHARED = {
    *("shmget", "shmat", "shmctl", "semget", "semop", "semctl", "semtimedop", "msgget", "msgsnd", "msgrcv", "msgctl"),
    *("mq_open", "mq_unlink"),
}
"""System V and POSIX IPC: without a namespace, the objects of the user's other programs can be reached by guessing."""
_CUTS = {"truncate", "open", "openat", "openat2"}
"""Calls that can truncate a file that was not opened for writing."""

_MODES = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "mknod": 1, "mknodat": 2}
"""Calls that set modes → which of their arguments, counted from 0, is the mode."""
_OPENS = {"open": 1, "openat": 2}
"""Calls that may make a file → which argument has the flags; the next one is the mode."""
_OWNERS = {"chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat"}
"""Calls that change whose a file is and who may do what with it, whatever else may be written."""
_SET_ID = stat.S_ISUID | stat.S_ISGID

Instruction = tuple[int, int, int, int]
"""Code, jump if true, jump if false, constant."""


class FilterUnavailable(Exception):
    """There is no filter for this kind of machine. `str()` is a sentence for the user."""


def allowed_families(*, network: bool, own_namespace: bool) -> tuple[int, ...]:
    """The socket families a command may use. A pair of connected unix sockets is always possible.

    Without a network namespace of its own (`own_namespace`) it may use none: UDP cannot be refused otherwise, and unix
    sockets reach the session's services, which start programs outside. With the host's network, the abstract unix
    sockets are the host's too."""
    internet = (socket.AF_INET, socket.AF_INET6, 16)  # 16: AF_NETLINK, to look at interfaces
    if network:
        return internet
    return (socket.AF_UNIX, *internet) if own_namespace else ()


def filter_program(
    allowed_families: Sequence[int],
    machine: str | None = None,
    *,
    alone: bool = True,
    cuts: bool = True,
    owners: bool = True,
) -> bytes:
    """The filter as an array of `struct sock_filter`. Raises `FilterUnavailable`. `alone`: the command has namespaces
    of its own, so calls that reach other processes by a number find none. `cuts` false: the filter must refuse
    truncation of files that may only be read, since nothing else does (Landlock before version 3). `owners` false: it
    must refuse to change modes and owners, which Landlock does not look at."""
    name = machine or platform.machine()
    machine_calls = _MACHINES.get(name)
    if machine_calls is None:
        raise FilterUnavailable(f"No system call filter is available for {name}.")
    return b"".join(
        struct.pack("=HBBI", *instruction)
        for instruction in _instructions(machine_calls, allowed_families, alone=alone, cuts=cuts, owners=owners)
    )


def _instructions(
    machine: _Machine, allowed_families: Sequence[int], *, alone: bool, cuts: bool, owners: bool
) -> list[Instruction]:
    refuse = (_RETURN, 0, 0, _ERRNO | errno.EPERM)
    allow = (_RETURN, 0, 0, _ALLOW)
    of = machine.numbers
    not_always = {*_LOOKED_AT, *_CUTS, *_MODES, "prlimit64", *(_SHARED if alone else ()), *_OWNERS}
    if not owners:
        not_always -= _OWNERS
    return [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, machine.arch),
        refuse,  # 32-bit programs use other call numbers
        (_LOAD, 0, 0, _NUMBER),
        *(((_AT_LEAST, 0, 1, _X32), refuse) if machine.x32 else ()),
        *_for_each(number for call, number in of.items() if call not in not_always),
        *_refuse_set_id(of),
        *_on_call(of["clone3"], [(_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]),
        *_on_call(of["unshare"], [*_any_flag(_NEW_NAMESPACES), allow]),
        *_on_call(of["clone"], [*_any_flag(_NEW_NAMESPACES), allow]),
        *_on_call(of["ioctl"], [(_LOAD, 0, 0, _ARGUMENTS + 8), *_for_each((_TIOCSTI, _TIOCLINUX)), allow]),
        *([] if alone else _on_call(of["prlimit64"], [*_refuse_foreign_limits(), allow])),
        *([] if cuts else _refuse_truncation(of, allow)),
        *_on_call(of["socketpair"], [*_socketpair_rules(allowed_families, allow), refuse]),
        *_on_call(of["socket"], [(_LOAD, 0, 0, _ARGUMENTS), *_for_each(allowed_families, allow), refuse]),
        allow,
    ]


def _for_each(values: Iterable[int], then: Instruction = (_RETURN, 0, 0, _ERRNO | errno.EPERM)) -> list[Instruction]:
    """If the loaded value is one of these, run `then`."""
    return [part for value in values for part in ((_EQUAL, 0, 1, value), then)]


def _any_flag(flags: int) -> list[Instruction]:
    """Refuse if the first argument has one of these bits."""
    return [
        (_LOAD, 0, 0, _ARGUMENTS),
        (_AND, 0, 0, flags),
        (_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
    ]


def _refuse_set_id(of: Mapping[str, int]) -> list[Instruction]:
    """Refuse modes with which a program runs as the owner of its file. What else a call does, later rules look at."""
    lines: list[Instruction] = []
    for call, argument in _MODES.items():
        if call in of:
            lines += _on_call(of[call], [*_refuse_set_id_in(argument), (_LOAD, 0, 0, _NUMBER)])
    for call, flags in _OPENS.items():
        if call in of:
            mode = _refuse_set_id_in(flags + 1)
            makes = [(_LOAD, 0, 0, _ARGUMENTS + 8 * flags), (_AND, 0, 0, os.O_CREAT), (_EQUAL, len(mode), 0, 0)]
            lines += _on_call(of[call], [*makes, *mode, (_LOAD, 0, 0, _NUMBER)])
    return lines


def _refuse_set_id_in(argument: int) -> list[Instruction]:
    return [
        (_LOAD, 0, 0, _ARGUMENTS + 8 * argument),
        (_AND, 0, 0, _SET_ID),
        (_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
    ]


def _socketpair_rules(allowed_families: Sequence[int], allow: Instruction) -> list[Instruction]:
    """Allow socket pairs. A datagram one can send to any address, as a socket can, so it needs AF_UNIX allowed."""
    if socket.AF_UNIX in allowed_families:
        return [allow]
    return [(_LOAD, 0, 0, _ARGUMENTS + 8), (_AND, 0, 0, _KIND), *_for_each(_SEQUENCES, allow)]


def _refuse_foreign_limits() -> list[Instruction]:
    """Refuse setting limits (third argument not NULL) of another process (first argument not 0)."""
    return [
        (_LOAD, 0, 0, _ARGUMENTS),
        (_EQUAL, 5, 0, 0),
        (_LOAD, 0, 0, _ARGUMENTS + 16),
        (_EQUAL, 0, 2, 0),
        (_LOAD, 0, 0, _ARGUMENTS + 20),
        (_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
    ]


def _refuse_truncation(of: Mapping[str, int], allow: Instruction) -> list[Instruction]:
    """Refuse truncation except when a file is opened for writing, which Landlock checks. The flags of `openat2` are in
    memory that no filter can read, so it fails with ENOSYS."""
    lines = [*_on_call(of["truncate"], [(_RETURN, 0, 0, _ERRNO | errno.EPERM)])]
    lines += _on_call(of["openat2"], [(_RETURN, 0, 0, _ERRNO | errno.ENOSYS)])
    for call, flags in (("open", _ARGUMENTS + 8), ("openat", _ARGUMENTS + 16)):
        if call in of:
            cut = [(_LOAD, 0, 0, flags), (_AND, 0, 0, os.O_TRUNC | os.O_ACCMODE), *_for_each(_CUTTING), allow]
            lines += _on_call(of[call], cut)
    return lines


def _on_call(number: int, body: list[Instruction]) -> list[Instruction]:
    """For that system call, run `body`, which must end with a return, or load the number again."""
    return [(_EQUAL, 0, len(body), number), *body]
