"""Builds the filter of system calls that a box refuses, as classic BPF.

It is a list of what is refused, since agents' runtimes use nearly everything else. What is on it no honest tool needs:
it loads code into the kernel, changes the machine, makes namespaces and mounts, looks into other processes, or has been
a way out of boxes before (io_uring, userfaultfd, key rings, TIOCSTI). Refused calls fail with EPERM. Calls that are
newer than this file, and those of another processor's or of the x32 binary interface, do not exist here.

`ptrace` is among them, so that leak checks of sanitizers have to be off in a box (`ASAN_OPTIONS=detect_leaks=0`).
`name_to_handle_at` is not: the name that it gives is worth nothing without `open_by_handle_at`.
"""

from __future__ import annotations

import errno
import os
import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_Instruction = tuple[int, int, int, int]

REFUSED: Final = (
    "io_uring_setup", "io_uring_enter", "io_uring_register", "ptrace", "process_vm_readv", "process_vm_writev",
    "kcmp", "pidfd_getfd", "bpf", "perf_event_open", "userfaultfd", "fanotify_init", "keyctl", "add_key",
    "request_key", "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "open_tree_attr", "fsopen",
    "fsconfig", "fsmount", "fspick", "mount_setattr", "unshare", "setns", "open_by_handle_at", "quotactl",
    "quotactl_fd", "acct", "swapon", "swapoff", "reboot", "kexec_load", "kexec_file_load", "init_module",
    "finit_module", "delete_module", "settimeofday", "clock_settime", "adjtimex", "clock_adjtime", "sethostname",
    "setdomainname", "syslog", "vhangup", "nfsservctl", "lookup_dcookie", "ioperm", "iopl", "modify_ldt", "uselib",
)  # fmt: skip

_MACHINES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # AUDIT_ARCH_*
_LOAD, _EQUAL, _ABOVE, _ANY_BIT, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data; the low half of an argument comes first
_ALLOW: Final[_Instruction] = (_RETURN, 0, 0, 0x7FFF0000)
_NEW_NAMESPACE: Final = 0x7E020000  # CLONE_NEW*, but for the time namespace, which clone(2) cannot make
_TERMINAL_INPUT: Final = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
_UNIX, _INET, _INET6, _NETLINK, _ROUTE = 1, 2, 10, 16, 0
_ASK_PERSONALITY, _SAME_ADDRESSES = 0xFFFFFFFF, 0x0040000  # ADDR_NO_RANDOMIZE: tests whose order follows addresses


def program(*, machine: str | None = None) -> bytes:
    """Return the filter as an array of `struct sock_filter`, for bwrap's `--seccomp` and prctl(2).

    It is empty for a processor of which there is no list of system calls.

    Args:
        machine: As `uname -m` says it; this machine's if None.
    """
    machine = os.uname().machine if machine is None else machine
    if machine not in _MACHINES:
        return b""
    cases = {name: [_refuse()] for name in REFUSED} | _cases()
    instructions = [*_preamble(_MACHINES[machine]), *_dispatch(cases, NUMBERS[machine]), _ALLOW]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)


def _preamble(machine: int) -> list[_Instruction]:
    return [
        (_LOAD, 0, 0, _MACHINE),
        (_EQUAL, 1, 0, machine),
        _refuse(),
        (_LOAD, 0, 0, _NUMBER),
        (_ABOVE, 0, 1, LAST),  # also every x32 call, whose numbers begin at 2**30
        _refuse(errno.ENOSYS),
    ]


def _dispatch(cases: Mapping[str, list[_Instruction]], numbers: Mapping[str, int]) -> list[_Instruction]:
    """Return a comparison for each system call of the machine; each body ends with a return on every path."""
    known = [(numbers[name], body) for name, body in cases.items() if name in numbers]
    return [part for number, body in known for part in ((_EQUAL, 0, len(body), number), *body)]


def _cases() -> dict[str, list[_Instruction]]:
    return {
        "clone": [_argument(0), (_ANY_BIT, 0, 1, _NEW_NAMESPACE), _refuse(), _ALLOW],
        "clone3": [_refuse(errno.ENOSYS)],  # its flags are in memory, out of sight; libc then takes clone
        "personality": [*_only(0, 0, _SAME_ADDRESSES, _ASK_PERSONALITY), _refuse()],
        "ioctl": [_argument(1), *_when(_TERMINAL_INPUT, _refuse()), _ALLOW],
        "socket": _sockets(),
        "socketpair": [*_only(0, _UNIX), _refuse()],
    }


def _sockets() -> list[_Instruction]:
    return [
        *_only(0, _UNIX, _INET, _INET6),
        (_EQUAL, 0, 3, _NETLINK),
        _argument(2),
        (_EQUAL, 0, 1, _ROUTE),
        _ALLOW,
        _refuse(),
    ]


def _only(index: int, *values: int) -> list[_Instruction]:
    return [_argument(index), *_when(values, _ALLOW)]


def _when(values: tuple[int, ...], answer: _Instruction) -> list[_Instruction]:
    return [part for value in values for part in ((_EQUAL, 0, 1, value), answer)]


def _argument(index: int) -> _Instruction:
    # The lower half is all that the kernel itself looks at: these arguments are ints.
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * index)


def _refuse(number: int = errno.EPERM) -> _Instruction:
    return (_RETURN, 0, 0, 0x00050000 | number)


LAST: Final = 469
"""The highest known system call number (`file_setattr`, Linux 6.17)."""

_EVERYWHERE: Final = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435, "pidfd_getfd": 438,
    "mount_setattr": 442, "quotactl_fd": 443, "open_tree_attr": 467,
}  # fmt: skip
_X86_64: Final = {
    "ioctl": 16, "socket": 41, "socketpair": 53, "clone": 56, "ptrace": 101, "syslog": 103, "uselib": 134,
    "personality": 135, "vhangup": 153, "modify_ldt": 154, "pivot_root": 155, "adjtimex": 159, "chroot": 161,
    "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169,
    "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176,
    "quotactl": 179, "nfsservctl": 180, "lookup_dcookie": 212, "clock_settime": 227, "kexec_load": 246, "add_key": 248,
    "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298, "fanotify_init": 300,
    "open_by_handle_at": 304, "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311,
    "kcmp": 312, "finit_module": 313, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
}  # fmt: skip
_AARCH64: Final = {
    "lookup_dcookie": 18, "ioctl": 29, "umount2": 39, "mount": 40, "pivot_root": 41, "nfsservctl": 42, "chroot": 51,
    "vhangup": 58, "quotactl": 60, "acct": 89, "personality": 92, "unshare": 97, "kexec_load": 104, "init_module": 105,
    "delete_module": 106, "clock_settime": 112, "syslog": 116, "ptrace": 117, "reboot": 142, "sethostname": 161,
    "setdomainname": 162, "settimeofday": 170, "adjtimex": 171, "socket": 198, "socketpair": 199, "add_key": 217,
    "request_key": 218, "keyctl": 219, "clone": 220, "swapon": 224, "swapoff": 225, "perf_event_open": 241,
    "fanotify_init": 262, "open_by_handle_at": 265, "clock_adjtime": 266, "setns": 268, "process_vm_readv": 270,
    "process_vm_writev": 271, "kcmp": 272, "finit_module": 273, "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294,
}  # fmt: skip

NUMBERS: Final[Mapping[str, Mapping[str, int]]] = {
    "x86_64": _X86_64 | _EVERYWHERE,
    "aarch64": _AARCH64 | _EVERYWHERE,
}
"""System call numbers by name, by machine (`uname -m`). A missing name is a call that the machine never had."""
