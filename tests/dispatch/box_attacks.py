"""What a program in a box may try against the host, by name: Python code that raises OSError when it is refused.

Every piece runs in the view, in a process that has these names: `outside`, `view` and `tool` (paths; the last one is a
folder that the box may read), `driver` (a process number), `ports` and `sockets` (where the host listens), `libc`,
`call` (a system call by its number that raises OSError), `at(path)` (a descriptor without rights: O_PATH), `c(text)`.
All that is harmed without a box lies below the test's own folder.
"""

from __future__ import annotations

from typing import Final

SETTING: Final = r"""
import ctypes, errno, fcntl, json, os, pathlib, resource, shutil, signal, socket, struct, sys
given = json.loads(sys.argv[1])
outside, view, tool = given["outside"], given["view"], given["tool"]
driver, ports, sockets = given["driver"], given["ports"], given["sockets"]
libc = ctypes.CDLL(None, use_errno=True)
MACHINE = 0 if os.uname().machine == "x86_64" else 1
FCHMODAT2, LINKAT = 452, (265, 37)

def call(number, *words):
    number = number if isinstance(number, int) else number[MACHINE]
    words = [word if isinstance(word, (bytes, ctypes.Array)) else ctypes.c_long(word) for word in words]
    result = libc.syscall(ctypes.c_long(number), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def at(path):
    return os.open(path, os.O_PATH)

def c(text):
    return ctypes.create_string_buffer(os.fsencode(text))

def must(condition):
    if not condition:
        raise OSError(errno.EPERM, "it was not possible")

said = {}
for name, code in given["tries"].items():
    try:
        exec(code, dict(globals()))
        said[name] = "done"
    except OSError as error:
        said[name] = errno.errorcode.get(error.errno, str(error))
print(json.dumps(said))
"""
"""Reads its orders as JSON from argv, tries one after the other, and prints name -> `done` or the name of the error."""

WRITES: Final = {
    "a new file": "pathlib.Path(outside, 'new').write_text('x')",
    "an old file": "pathlib.Path(outside, 'file').write_text('x')",
    "the end of a file": "open(outside + '/file', 'a').write('x')",
    "a file that is emptied while it is read": "os.open(outside + '/file', os.O_RDONLY | os.O_TRUNC)",
    "the length of a file": "os.truncate(outside + '/file', 1)",
    "a file without a name": "os.open(outside, os.O_TMPFILE | os.O_WRONLY, 0o600)",
    "a folder": "os.mkdir(outside + '/made')",
    "a removed file": "os.unlink(outside + '/gone')",
    "a removed folder": "os.rmdir(outside + '/empty')",
    "another name": "os.rename(outside + '/moved', outside + '/moved.1')",
    "a file that is moved into the view": "os.rename(outside + '/taken', view + '/taken')",
    "a file that is moved out of the view": "pathlib.Path(view, 'a').touch(); os.rename(view + '/a', outside + '/a')",
    "a link out there": "os.symlink('x', outside + '/link')",
    "a hard link out there": "os.link(outside + '/file', outside + '/hard')",
    "a hard link to a file of the view": "pathlib.Path(view, 'b').touch(); os.link(view + '/b', outside + '/b')",
    "a pipe": "os.mkfifo(outside + '/fifo')",
    "through a link in the view": "os.symlink(outside, 'out'); pathlib.Path('out/by-link').write_text('x')",
    "through the parent of the view": "pathlib.Path('..', 'outside', 'by-parent').write_text('x')",
    "through a folder that was only found": "os.open('by-folder', os.O_CREAT | os.O_WRONLY, dir_fd=at(outside))",
    "through /proc/self/root": "pathlib.Path('/proc/self/root' + outside, 'by-root').write_text('x')",
    "through /proc/self/fd": "f = at(outside + '/file'); open(f'/proc/self/fd/{f}', 'w').write('x')",
    "a file of a readable folder": "pathlib.Path(tool, 'file').write_text('x')",
    "a hard link to a file of a readable folder": "os.link(tool + '/file', 'c'); open('c', 'a').write('x')",
    "a hard link to an open file of a readable folder": (
        "f = os.open(tool + '/file', os.O_RDONLY)\n"
        "call(LINKAT, -100, c(f'/proc/self/fd/{f}'), -100, c('d'), 0x400); open('d', 'a').write('x')"
    ),
    "a hard link to a descriptor of a readable folder": (
        "f = os.open(tool + '/file', os.O_RDONLY)\n"
        "call(LINKAT, f, c(''), -100, c('e'), 0x1000); open('e', 'a').write('x')"
    ),
}

READS: Final = {
    "a file": "open(outside + '/file').read()",
    "a folder": "os.listdir(outside)",
    "a file by a link in the view": "os.symlink(outside + '/file', 'r1'); open('r1').read()",
    "a file by a hard link in the view": "os.link(outside + '/file', 'r2'); open('r2').read()",
    "a file that was only found": "f = at(outside + '/file'); open(f'/proc/self/fd/{f}').read()",
    "a file below a folder that was only found": "os.open('file', os.O_RDONLY, dir_fd=at(outside))",
    "a file by the working folder": "os.chdir(outside); open('file').read()",
    "a program": "must(os.spawnv(os.P_WAIT, outside + '/program', ['x']) == 0)",
    "the driver's environment": "open(f'/proc/{driver}/environ', 'rb').read()",
    "the driver's memory": "open(f'/proc/{driver}/mem', 'rb')",
    "the driver's map": "open(f'/proc/{driver}/maps').read()",
    "the driver's descriptors": "os.readlink(f'/proc/{driver}/fd/0')",
    "the driver's working folder": "os.listdir(f'/proc/{driver}/cwd')",
    "the supervisor's memory": "open(f'/proc/{os.getppid()}/mem', 'rb')",
    "what happens to files": "call((254, 27), call((294, 26), 0), c(outside), 0xFFF)",
}

CALLS: Final = {
    "tcp": "socket.create_connection(('127.0.0.1', ports['tcp']), 2)",
    "udp": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', ports['udp']))",
    "a local socket": "socket.socket(socket.AF_UNIX).connect(sockets['path'])",
    "an abstract socket": "socket.socket(socket.AF_UNIX).connect('\\0' + sockets['abstract'])",
    "a letter from a connected pair": (
        "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', sockets['letters'])"
    ),
}

METADATA: Final = {
    "a mode": "os.chmod(outside + '/file', 0o700)",
    "the mode of a folder": "os.chmod(outside, 0o711)",
    "a mode by a relative path": "os.chmod('../outside/file', 0o701)",
    "a mode by a folder": "os.chmod('file', 0o702, dir_fd=at(outside))",
    "a mode by a link": "os.symlink(outside + '/file', 'm1'); os.chmod('m1', 0o703)",
    "a mode by a linked folder": "os.symlink(outside, 'm2'); os.chmod('m2/file', 0o704)",
    "a mode by /proc/self/fd": "f = at(outside + '/file'); os.chmod(f'/proc/self/fd/{f}', 0o705)",
    "a mode by /proc/PID/fd": "f = at(outside + '/file'); os.chmod(f'/proc/{os.getpid()}/fd/{f}', 0o706)",
    "a mode by /proc/self/cwd": "os.chmod('/proc/self/cwd/../outside/file', 0o707)",
    "a mode by /proc/self/root": "os.chmod('/proc/self/root' + outside + '/file', 0o710)",
    "a mode by an empty path": "call(FCHMODAT2, at(outside + '/file'), c(''), 0o712, 0x1000)",
    "a mode without following": "call(FCHMODAT2, -100, c(outside + '/file'), 0o713, 0x100)",
    "a mode by the working folder": "os.chdir(outside)\ntry: os.chmod('file', 0o714)\nfinally: os.chdir(view)",
    "a mode by a descriptor of a readable file": "os.fchmod(os.open(tool + '/file', os.O_RDONLY), 0o715)",
    "a mode by a descriptor of a readable folder": "os.fchmod(os.open(tool, os.O_RDONLY), 0o716)",
    "a mode by a second descriptor": "os.fchmod(os.dup(os.open(tool + '/file', os.O_RDONLY)), 0o717)",
    "an owner": "os.chown(outside + '/file', os.getuid(), os.getgid())",
    "an owner by a descriptor": "os.fchown(os.open(tool + '/file', os.O_RDONLY), os.getuid(), -1)",
    "the owner of a link": "os.lchown(outside + '/a-link', os.getuid(), os.getgid())",
    "times": "os.utime(outside + '/file', (1, 1))",
    "times now": "os.utime(outside + '/file')",
    "the times of a link": "os.utime(outside + '/a-link', (2, 2), follow_symlinks=False)",
    "times by a descriptor": "os.utime(os.open(tool + '/file', os.O_RDONLY), (3, 3))",
    "times by a folder": "os.utime('file', (4, 4), dir_fd=at(outside))",
    "an attribute": "os.setxattr(outside + '/file', 'user.x', b'x')",
    "an attribute by a descriptor": "os.setxattr(os.open(tool + '/file', os.O_RDONLY), 'user.x', b'x')",
    "a removed attribute": "os.removexattr(outside + '/file', 'user.there')",
    "flags": "fcntl.ioctl(os.open(tool + '/file', os.O_RDONLY), 0x40086602, struct.pack('q', 0x40))",
}

PROCESSES: Final = {
    "a signal to the driver": "os.kill(driver, 0)",
    "a signal to the driver's group": "os.killpg(os.getpgid(driver), 0)",
    "a signal by a descriptor": "signal.pidfd_send_signal(os.pidfd_open(driver), 0)",
    "a signal to a thread of the driver": "call((200, 130), driver, 0)",
    "a queued signal": "call((129, 138), driver, 0, c(struct.pack('iii116x', 0, 0, -1)))",
    "the driver's limits": "of = resource.RLIMIT_NOFILE; resource.prlimit(driver, of, resource.prlimit(driver, of))",
    "the driver's priority": "os.setpriority(os.PRIO_PROCESS, driver, os.getpriority(os.PRIO_PROCESS, driver))",
    "the driver's processors": "os.sched_setaffinity(driver, os.sched_getaffinity(driver))",
    "the driver's scheduling": "os.sched_setscheduler(driver, os.SCHED_OTHER, os.sched_param(0))",
    "the driver's disk priority": "call((251, 30), 1, driver, 0x4004)",
    "shared memory": "i = call((29, 194), 0, 4096, 0o600 | 0o1000); call((31, 195), i, 0, 0)",
}
"""Each leaves what it reaches as it is."""
