"""The filter in the kernel: what it refuses, what it lets honest programs do, alone and as bubblewrap loads it."""

from __future__ import annotations

import errno
import json
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Final

import anyio
import pytest

from pipeline.process import Command, Completed, Mount
from pipeline.programs import locate
from pipeline.sandbox.boxes import seccomp
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap
from pipeline.sandbox.boxes.seccomp import program
from pipeline.testing.languages.python.measuring import same_addresses

MACHINE: Final = platform.machine()
NUMBERS: Final = seccomp.NUMBERS.get(MACHINE, {})
HEADERS: Final = {
    "x86_64": (Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), Path("/usr/include/asm/unistd_64.h")),
    "aarch64": (Path("/usr/include/asm-generic/unistd.h"),),
}
PYTHON: Final = locate(sys.executable)
WORK: Final = Path("/workspace")

pytestmark = pytest.mark.skipif(not NUMBERS, reason="there is no filter for this processor")

LOADER = """
import ctypes, os, struct, sys
rules = bytes.fromhex(sys.argv[1])
buffer = ctypes.create_string_buffer(rules, len(rules))
libc = ctypes.CDLL(None, use_errno=True)
prog = struct.pack("HxxxxxxP", len(rules) // 8, ctypes.addressof(buffer))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, prog, 0, 0) == 0, ctypes.get_errno()
"""
"""What puts itself under the filter: PR_SET_NO_NEW_PRIVS, then PR_SET_SECCOMP."""

CALLER = """
import ctypes, json, sys
libc = ctypes.CDLL(None, use_errno=True)
said = []
for call in json.loads(sys.argv[-1]):
    ctypes.set_errno(0)
    result = libc.syscall(*(ctypes.c_long(word) for word in call))
    said.append(ctypes.get_errno() if result < 0 else 0)
print(json.dumps(said))
"""

# Every call has arguments that the kernel would turn down at once, by another error, if the filter let it through.
BAD: Final = -1
NO_THREAD: Final = 0x800  # CLONE_SIGHAND without CLONE_VM: no clone could come of it
REFUSED: Final[dict[str, tuple[str, *tuple[int, ...]]]] = {
    **{name: (name, BAD, BAD, BAD, BAD, BAD, BAD) for name in (
        "io_uring_setup", "io_uring_enter", "io_uring_register", "process_vm_readv", "process_vm_writev", "kcmp",
        "pidfd_getfd", "bpf", "perf_event_open", "userfaultfd", "fanotify_init", "keyctl", "add_key", "request_key",
        "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "open_tree_attr", "fsopen", "fsconfig",
        "fsmount", "fspick", "mount_setattr", "unshare", "setns", "open_by_handle_at", "quotactl", "quotactl_fd",
        "acct", "swapon", "swapoff", "reboot", "kexec_load", "kexec_file_load", "init_module", "finit_module",
        "delete_module", "settimeofday", "clock_settime", "adjtimex", "clock_adjtime", "sethostname", "setdomainname",
        "syslog", "nfsservctl", "lookup_dcookie", "ioperm", "iopl", "modify_ldt", "uselib", "vhangup", "ptrace",
    )},
    "a traced child": ("ptrace", 16, 1, 0, 0),
    "the session keyring": ("keyctl", 0, -3, 0, 0),
    "a ring": ("io_uring_setup", 1, 0),
    **{f"clone with {flag:#x}": ("clone", flag | NO_THREAD, 0, 0, 0, 0) for flag in (
        0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000,
    )},
    "another personality": ("personality", 0x0400000),
    "input for the terminal": ("ioctl", BAD, 0x5412, 0),
    "input for the terminal, with a long command": ("ioctl", BAD, 0x5412 | 1 << 40, 0),
    "the console's selection": ("ioctl", BAD, 0x541C, 0),
    **{f"address family {family}": ("socket", family, 2, 0) for family in (0, 3, 5, 9, 17, 21, 29, 30, 31, 38, 40, 44)},
    "raw netlink of another kind": ("socket", 16, 3, 15),
    "netlink for the audit": ("socket", 16, 3, 9),
    "a pair of another family": ("socketpair", 30, 1, 0, 0),
}  # fmt: skip


def call(name: str, *arguments: int) -> tuple[int, ...]:
    return (NUMBERS[name], *arguments)


def errors(calls: list[tuple[int, ...]], rules: bytes) -> list[int]:
    """Make the calls one after the other in a child under the filter; return their error numbers."""
    ended = subprocess.run(
        [sys.executable, "-I", "-c", LOADER + CALLER, rules.hex(), json.dumps(calls)],
        capture_output=True,
        text=True,
        check=True,
        start_new_session=True,  # without a terminal that vhangup(2) could hang up
    )
    return json.loads(ended.stdout)


@pytest.fixture(scope="module")
def refusals() -> dict[str, int]:
    made = {name: call(*words) for name, words in REFUSED.items() if words[0] in NUMBERS}
    return dict(zip(made, errors(list(made.values()), program()), strict=True))


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_a_box_has_no_use_for_is_not_permitted(name: str, refusals: dict[str, int]) -> None:
    if name not in refusals:
        pytest.skip(f"{MACHINE} has no such call")
    assert refusals[name] == errno.EPERM


def test_every_refused_call_is_known_on_some_machine_and_tried_here() -> None:
    known = {name for numbers in seccomp.NUMBERS.values() for name in numbers}
    assert set(seccomp.REFUSED) <= known
    assert set(seccomp.REFUSED) <= set(REFUSED)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("clone3", BAD, BAD), errno.ENOSYS),
        (("personality", 0xFFFFFFFF), 0),
        # without random addresses, for tests whose order follows them; a container may refuse it, too
        *([(("personality", 0x0040000), 0)] if same_addresses() else []),
        (("personality", 0), 0),
        (("socket", 1, 1, 0), 0),
        (("socket", 2, 1, 0), 0),
        (("socket", 10, 1, 0), 0),
        (("socket", 16, 3, 0), 0),
        (("ioctl", BAD, 0x5401, 0), errno.EBADF),
    ],
)
def test_everything_else_is_answered_by_the_kernel(words: tuple[str, *tuple[int, ...]], expected: int) -> None:
    (number,) = errors([call(*words)], program())
    assert number in {expected, errno.EAFNOSUPPORT if words[0] == "socket" else expected}


@pytest.mark.parametrize("number", [seccomp.LAST + 1, 511, 1 << 30, (1 << 30) + 101, 0xFFFFFFFE])
def test_a_call_that_is_not_known_does_not_exist(number: int) -> None:
    assert errors([(number, BAD, BAD, BAD, BAD, BAD, BAD)], program()) == [errno.ENOSYS]


@pytest.mark.skipif(MACHINE != "x86_64", reason="only x86_64 has an older interface besides its own")
def test_the_interface_of_32_bit_programs_is_refused() -> None:
    # push rbx; mov eax, 20 (getpid); ebx, ecx, edx, esi = 0; int 0x80; pop rbx; ret
    code = bytes.fromhex("53b81400000031db31c931d231f6cd805bc3")
    script = f"""
import mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write({code!r})
call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
print(call())
"""
    rules = program()
    ended = subprocess.run([sys.executable, "-c", LOADER + script, rules.hex()], capture_output=True, check=True)
    assert int(ended.stdout) == -errno.EPERM


def test_there_is_no_filter_for_a_processor_without_a_list() -> None:
    assert program(machine="riscv64") == b""


@pytest.mark.parametrize("machine", sorted(seccomp.NUMBERS))
def test_every_path_through_the_filter_ends(machine: str) -> None:
    rules = program(machine=machine)
    code = list(struct.iter_unpack("=HBBI", rules))
    assert len(code) < 4096
    for at, (what, yes, no, _) in enumerate(code):
        assert what == 0x06 or max(yes, no) + at + 1 < len(code)
    assert code[-1][0] == 0x06


@pytest.mark.parametrize("machine", sorted(HEADERS))
def test_the_numbers_are_those_of_the_systems_own_headers(machine: str) -> None:
    header = next((path for path in HEADERS[machine] if path.is_file()), None)
    if header is None:
        pytest.skip("the kernel's headers are not installed")
    found = {
        name: int(number) for name, number in re.findall(r"#define\s+__NR(?:3264)?_(\w+)\s+(\d+)", header.read_text())
    }
    known = {name: number for name, number in seccomp.NUMBERS[machine].items() if name in found}
    assert len(known) > 50
    assert known == {name: found[name] for name in known}


@pytest.fixture
def boxed() -> Bubblewrap:
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        pytest.skip("bubblewrap is not installed")
    return Bubblewrap(bwrap)


def in_box(box: Bubblewrap, *argv: str, mounts: tuple[Mount, ...] = (), env: dict[str, str] | None = None) -> Completed:
    cwd = mounts[-1].target if mounts else Path("/")
    return anyio.run(box.run, Command(argv, cwd, mounts, env or {}, timeout_s=120))


def test_bubblewrap_is_started_with_it(boxed: Bubblewrap) -> None:
    attacks = json.dumps([call("io_uring_setup", 1, 0), call("keyctl", 0, -3, 0, 0), call("ptrace", 16, 1, 0, 0)])
    ended = in_box(boxed, *PYTHON.argv("-I", "-c", CALLER, attacks), mounts=PYTHON.mounts)
    assert json.loads(ended.stdout) == [errno.EPERM] * 3, ended.stderr


@pytest.mark.slow
def test_a_pytest_run_is_not_disturbed(boxed: Bubblewrap, tmp_path: Path) -> None:
    (tmp_path / "test_honest.py").write_text(HONEST_TEST)
    mounts = (*PYTHON.mounts, Mount(tmp_path, WORK, writable=True))
    ended = in_box(boxed, *PYTHON.argv("-m", "pytest", "-q", "-p", "no:cacheprovider"), mounts=mounts)
    assert ended.exit_code == 0, ended.stdout.decode() + ended.stderr.decode()


HONEST_TEST = """
import asyncio, multiprocessing, os, socket, subprocess, sys, tempfile, threading


def double(number):
    return number * 2


def test_threads_processes_and_sockets(tmp_path):
    thread = threading.Thread(target=double, args=(1,))
    thread.start()
    thread.join()
    assert subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True).stdout == b"1\\n"
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(double, [1, 2]) == [2, 4]
    server = socket.create_server(("127.0.0.1", 0))
    socket.create_connection(server.getsockname()).close()
    server.close()

    async def run():
        process = await asyncio.create_subprocess_exec("/bin/true")
        return await process.wait()

    assert asyncio.run(run()) == 0
    path = tmp_path / "x"
    path.write_text("x")
    path.chmod(0o755)
    os.utime(path)
"""


@pytest.mark.parametrize(
    "argv",
    [
        ("node", "-e", "require('child_process').execFileSync('/bin/true'); require('os').networkInterfaces()"),
        ("git", "diff", "--no-index", "/etc/hosts", "/etc/hosts"),
        ("sh", "-c", "mkdir a; echo x > a/b; tar -cf - a | tar -xf - -C /tmp; chmod +x /tmp/a/b; /usr/bin/env | sort"),
    ],
)
def test_honest_tools_work(boxed: Bubblewrap, argv: tuple[str, ...], tmp_path: Path) -> None:
    found = shutil.which(argv[0], path="/usr/local/bin:/usr/bin:/bin")
    if found is None:
        pytest.skip(f"{argv[0]} is not installed")
    ended = in_box(boxed, found, *argv[1:], mounts=(Mount(tmp_path, WORK, writable=True),))
    assert ended.exit_code == 0, ended.stderr.decode()


@pytest.mark.broad
@pytest.mark.slow
def test_a_rust_project_is_built_and_tested(boxed: Bubblewrap, tmp_path: Path) -> None:
    rustup = Path(os.environ.get("RUSTUP_HOME", Path.home() / ".rustup")) / "toolchains"
    toolchain = next((folder for folder in sorted(rustup.glob("*")) if (folder / "bin/cargo").exists()), None)
    if toolchain is None or shutil.which("cc") is None:
        pytest.skip("there is no Rust here")
    (tmp_path / "src").mkdir()
    (tmp_path / "Cargo.toml").write_text('[package]\nname = "tiny"\nversion = "0.1.0"\nedition = "2021"\n')
    (tmp_path / "src/lib.rs").write_text(
        "#[test]\nfn it() { assert_eq!(std::thread::spawn(|| 1).join().unwrap(), 1); }\n"
    )
    tool = Mount(toolchain, Path("/opt/rust"))
    env = {"PATH": "/opt/rust/bin:/usr/bin:/bin"}
    ended = in_box(
        boxed, "/opt/rust/bin/cargo", "test", "--offline", mounts=(tool, Mount(tmp_path, WORK, writable=True)), env=env
    )
    assert ended.exit_code == 0, ended.stderr.decode()
    assert b"1 passed" in ended.stdout
