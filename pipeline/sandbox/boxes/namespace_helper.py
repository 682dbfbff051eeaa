"""The helper program of the driver: makes mounts in new namespaces, then replaces itself by the box.

Two orders (`marshal` on a descriptor, from the driver that started this). `overlay`: mount a writable layer over
read-only ones and hand its descriptors to the driver, which keeps the namespace alive by them. `box`: show the box's
mounts to an unprivileged user, give it a network with one listening socket, and become bubblewrap. Nothing here is left
behind: what it mounts ends with the namespaces.

A run starts this some thirty times, and what it imports is most of what that takes: so `_socket` and not `socket`, no
`json`, no `signal`, no `typing`.
"""

from __future__ import annotations

import _socket
import ctypes
import fcntl
import marshal
import os
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

_LIBC: Final = ctypes.CDLL(None, use_errno=True)

# System call numbers that are the same on every architecture.
_OPEN_TREE: Final = 428
_MOVE_MOUNT: Final = 429
_MOUNT_SETATTR: Final = 442

_CLONE_NEWNS: Final = 0x20000
_CLONE_NEWUSER: Final = 0x10000000
_CLONE_NEWNET: Final = 0x40000000
_MS_NOSUID_NODEV: Final = 0x2 | 0x4
_MS_REC_PRIVATE: Final = 0x4000 | 0x40000
_OPEN_TREE_CLONE: Final = 0x1
_CLOEXEC: Final = os.O_CLOEXEC
_AT_FDCWD: Final = -100
_AT_EMPTY_PATH: Final = 0x1000
_AT_RECURSIVE: Final = 0x8000
_MOVE_FROM_EMPTY_PATH: Final = 0x4
_MOUNT_ATTR_IDMAP: Final = 0x100000
_SIOCSIFFLAGS: Final = 0x8914
_IFF_UP: Final = 0x1
_SIGPIPE: Final = 13
_SIGXFSZ: Final = 25
_SIG_DFL: Final = None


class _MountAttr(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns", ctypes.c_uint64),
    )


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _mount(kind: str, at: str, options: str) -> None:
    made = _LIBC.mount(
        kind.encode(), os.fsencode(at), kind.encode(), ctypes.c_ulong(_MS_NOSUID_NODEV), options.encode()
    )
    _checked(made, f"mount of {kind}")


def _unshare(flags: int) -> None:
    _checked(_LIBC.unshare(flags), "unshare")


def _clone_of(path: str) -> int:
    """Return a descriptor of a detached copy of the mounts at `path`."""
    flags = _OPEN_TREE_CLONE | _CLOEXEC | _AT_RECURSIVE
    return _checked(_LIBC.syscall(_OPEN_TREE, _AT_FDCWD, os.fsencode(path), flags), f"open_tree of {path}")


def _attach(clone: int, at: str) -> None:
    moved = _LIBC.syscall(_MOVE_MOUNT, clone, b"", _AT_FDCWD, os.fsencode(at), _MOVE_FROM_EMPTY_PATH)
    _checked(moved, f"move_mount to {at}")


def _mapped(clone: int, userns: int) -> bool:
    """Return whether the files in the mount `clone` could be mapped to the user; some file systems cannot."""
    wish = _MountAttr(_MOUNT_ATTR_IDMAP, 0, 0, userns)
    for recursive in (_AT_RECURSIVE, 0):
        flags = _AT_EMPTY_PATH | recursive
        if _LIBC.syscall(_MOUNT_SETATTR, clone, b"", flags, ctypes.byref(wish), ctypes.sizeof(wish)) == 0:
            return True
    return False


def _mapping(owner: int) -> int:
    """Return the descriptor of a user namespace that maps our user's files to `owner`."""
    ready, told = os.pipe()
    waits, go_on = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            _unshare(_CLONE_NEWUSER)
            os.write(told, b"x")
            os.close(go_on)
            os.read(waits, 1)
        finally:
            os._exit(0)
    os.close(told)
    if not os.read(ready, 1):
        raise OSError("no user namespace for the mapping")
    for kind, own in (("uid_map", os.getuid()), ("gid_map", os.getgid())):
        with open(f"/proc/{child}/{kind}", "w") as file:  # noqa: PTH123  (pathlib costs a tenth of this program)
            file.write(f"{own} {owner} 1")
    userns = os.open(f"/proc/{child}/ns/user", os.O_RDONLY | _CLOEXEC)
    os.close(go_on)
    os.waitpid(child, 0)
    return userns


def overlay(order: dict[str, Any]) -> None:
    """Mount an empty writable layer over `lower` (topmost first) and send upper, merged, mount and user namespace."""
    at: str = order["at"]
    owner: int | None = order["owner"]
    lowers = [os.open(path, os.O_PATH | os.O_DIRECTORY | _CLOEXEC) for path in order["lower"]]
    clones: list[int] = []
    if owner is not None:
        userns = _mapping(owner)
        clones = [_clone_of(path) for path in order["lower"]]
        if not all(_mapped(clone, userns) for clone in clones):
            raise OSError("the file system of the checkout has no mapped mounts")
    _mount("tmpfs", at, f"mode=755,size={order['size']},nr_inodes={order['inodes']}")
    os.chdir(at)
    for name in ("upper", "work", "view"):
        os.mkdir(name)  # noqa: PTH102
        if owner is not None:
            os.chown(name, owner, owner)
    layers = [f"/proc/self/fd/{lower}" for lower in lowers]
    for number, clone in enumerate(clones):
        os.mkdir(f"lower{number}")  # noqa: PTH102
        _attach(clone, f"lower{number}")
        layers[number] = f"lower{number}"
    _mount("overlay", "view", f"userxattr,lowerdir={':'.join(layers)},upperdir=upper,workdir=work")
    sent = [os.open(name, os.O_RDONLY | os.O_DIRECTORY) for name in ("upper", "view")]
    sent += [os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name in ("mnt", "user")]
    _send(order["control"], sent)


def box(order: dict[str, Any]) -> None:
    """Mount `mounts` below the folder `stage` for `owner`, open the one network address, and execute `argv`."""
    if order["port"] is not None:
        _unshare(_CLONE_NEWNET)
        _send(order["control"], [_listener(order["port"])])
    if order["owner"] is not None:
        _unshare(_CLONE_NEWNS)
        _checked(_LIBC.mount(None, b"/", None, ctypes.c_ulong(_MS_REC_PRIVATE), None), "mount propagation")
        _show(order["mounts"], order["stage"], order["owner"])
        os.chdir("/")
        os.setgroups([])
        os.setresgid(order["owner"], order["owner"], order["owner"])
        os.setresuid(order["owner"], order["owner"], order["owner"])
    for number in (_SIGPIPE, _SIGXFSZ):  # Python ignores two signals that a program expects to have
        _LIBC.signal(number, _SIG_DFL)
    os.execv(order["argv"][0], order["argv"])  # noqa: S606  (no shell wanted)


def _show(mounts: list[dict[str, Any]], stage: str, owner: int) -> None:
    userns = _mapping(owner)
    clones = [_clone_of(mount["source"]) for mount in mounts]
    for mount, clone in zip(mounts, clones, strict=True):
        if mount["map"] and not _mapped(clone, userns) and mount["writable"]:
            _give(mount["source"], owner)
    are_folders = [os.path.isdir(mount["source"]) for mount in mounts]  # noqa: PTH112  (before they are hidden)
    _mount("tmpfs", stage, "mode=755,size=1m")
    for number, (clone, is_folder) in enumerate(zip(clones, are_folders, strict=True)):
        at = f"{stage}/{number}"
        if is_folder:
            os.mkdir(at)  # noqa: PTH102
        else:
            os.close(os.open(at, os.O_CREAT | os.O_WRONLY, 0o644))
        _attach(clone, at)


def _give(folder: str, owner: int) -> None:
    """Change the owner of everything in a folder of ours, where its file system cannot be mapped."""
    os.chown(folder, owner, owner, follow_symlinks=False)
    for _, folders, files, at in os.fwalk(folder):
        for name in (*folders, *files):
            os.chown(name, owner, owner, dir_fd=at, follow_symlinks=False)


def _listener(port: int) -> int:
    any_socket = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    fcntl.ioctl(any_socket.fileno(), _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))
    any_socket.close()
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", port))
    listener.listen()
    return listener.detach()


def _send(control: int, descriptors: list[int]) -> None:
    channel = _socket.socket(fileno=control)
    rights = struct.pack(f"{len(descriptors)}i", *descriptors)
    channel.sendmsg([b"ok"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
    channel.close()  # the box would inherit it
    for descriptor in descriptors:
        os.close(descriptor)


def _main(descriptor: str) -> None:
    with open(int(descriptor), "rb") as file:  # noqa: PTH123  (a descriptor)
        order = marshal.load(file)  # noqa: S302  (our own driver wrote it)
    {"overlay": overlay, "box": box}[order["do"]](order)


if __name__ == "__main__":
    try:
        _main(sys.argv[1])
    except OSError as error:
        sys.exit(f"redfirst-namespace-helper: {error.strerror or error}")
