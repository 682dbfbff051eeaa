"""The filter of system calls, loaded into the real kernel."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import anyio
import pytest

from pipeline.boxes.bubblewrap import Bubblewrap
from pipeline.boxes.seccomp import UnknownProcessorError, program
from pipeline.process import Command, Completed, Mount
from pipeline.programs import locate

LOADER = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
rules = bytes.fromhex(sys.argv[1])
class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("rules", ctypes.c_char_p))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(len(rules) // 8, rules))) == 0, ctypes.get_errno()
exec(sys.argv[2])
"""
CALLS = {
    "ptrace": (101, 117), "keyctl": (250, 219), "io_uring_setup": (425, 425), "unshare": (272, 97), "setns": (308, 268),
    "mount": (165, 40), "bpf": (321, 280), "userfaultfd": (323, 282), "process_vm_readv": (310, 270),
    "open_by_handle_at": (304, 265), "move_mount": (429, 429), "pidfd_getfd": (438, 438), "chroot": (161, 51),
    "perf_event_open": (298, 241), "kexec_load": (246, 104), "init_module": (175, 105), "add_key": (248, 217),
}  # fmt: skip
"""Numbers on x86_64 and aarch64, written down a second time: from the kernel's tables, not from ours."""


def under_the_filter(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", LOADER, program().hex(), code],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def here(numbers: tuple[int, int]) -> int:
    return numbers[0] if platform.machine() == "x86_64" else numbers[1]


@pytest.mark.parametrize("numbers", CALLS.values(), ids=CALLS.keys())
def test_a_call_that_no_agent_needs_is_refused(numbers: tuple[int, int]) -> None:
    done = under_the_filter(f"print(libc.syscall({here(numbers)}, 0, 0, 0, 0, 0), ctypes.get_errno())")
    assert done.stdout.split() == ["-1", "1"], done.stderr


@pytest.mark.broad(but_first=4)
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("print(libc.syscall(435, 0, 0), ctypes.get_errno())", "-1 38"),
        ("import fcntl\ntry: fcntl.ioctl(0, 0x5412, b'x')\nexcept OSError as e: print(e.errno)", "1"),
        ("import fcntl\ntry: fcntl.ioctl(0, 0x541C, b'x')\nexcept OSError as e: print(e.errno)", "1"),
        ("print(libc.personality(0x40000), ctypes.get_errno())", "-1 1"),
        ("print(libc.personality(0xFFFFFFFF))", "0"),
        ("import socket\ntry: socket.socket(17, 3)\nexcept OSError as e: print(e.errno)", "1"),
        ("import socket\ntry: socket.socket(16, 3, 9)\nexcept OSError as e: print(e.errno)", "1"),
        ("import socket\nsocket.socket(16, 3, 0); socket.socket(2, 1); socket.socket(1, 1); print('ok')", "ok"),
        ("import os\npid = os.fork()\nos._exit(7) if pid == 0 else print(os.waitpid(pid, 0)[1])", "1792"),
        ("import threading\nt = threading.Thread(target=print, args=('ran',)); t.start(); t.join()", "ran"),
    ],
    ids=["clone3", "TIOCSTI", "TIOCLINUX", "personality", "query", "packet", "audit", "sockets", "fork", "thread"],
)
def test_what_depends_on_an_argument_is_judged_by_it(code: str, said: str) -> None:
    done = under_the_filter(code)
    assert done.stdout.strip() == said, done.stderr


def test_a_new_user_namespace_is_refused_by_either_name() -> None:
    clone = here((56, 220))
    done = under_the_filter(f"print(libc.syscall({clone}, 0x10000011, 0, 0, 0, 0), ctypes.get_errno())")
    assert done.stdout.split() == ["-1", "1"], done.stderr


def test_a_processor_without_a_list_is_said_so() -> None:
    with pytest.raises(UnknownProcessorError, match="pdp11"):
        program(machine="pdp11")


def test_every_known_processor_has_a_filter() -> None:
    for machine in ("x86_64", "aarch64"):
        rules = program(machine=machine)
        assert len(rules) % 8 == 0
        assert len(rules) // 8 < 4096


def boxed(*argv: str, mounts: tuple[Mount, ...] = (), cwd: Path = Path("/tmp")) -> Completed:  # noqa: S108  (in the box)
    bwrap = shutil.which("bwrap")
    assert bwrap is not None, "bubblewrap is not installed"
    return anyio.run(partial(Bubblewrap(bwrap).run, Command(argv, cwd, mounts, env={"CARGO_HOME": "/tmp/cargo"})))  # noqa: S108


def test_the_box_has_the_filter() -> None:
    done = boxed("/usr/bin/grep", "Seccomp:", "/proc/self/status")
    assert done.stdout.split() == [b"Seccomp:", b"2"]


@pytest.mark.slow
def test_honest_programs_work_under_the_filter(tmp_path: Path) -> None:
    (tmp_path / "main.rs").write_text('fn main() { println!("built"); }\n')
    (tmp_path / "test_it.py").write_text("def test_it(tmp_path): (tmp_path / 'x').write_text('x')\n")
    view = Mount(tmp_path, Path("/work"), writable=True)
    python = locate(sys.executable)
    asked = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True)
    rust = Path(asked.stdout.strip())
    packages = Mount(Path(sys.prefix), Path(sys.prefix))
    tested = boxed(*python.argv("-m", "pytest", "-q"), mounts=(*python.mounts, packages, view), cwd=Path("/work"))
    assert b"1 passed" in tested.stdout, tested
    tools = () if rust == Path("/usr") else (Mount(rust, rust),)
    built = boxed(str(rust / "bin/rustc"), "main.rs", mounts=(*tools, view), cwd=Path("/work"))
    assert built.exit_code == 0, built.stderr
    assert boxed("/work/main", mounts=(view,)).stdout == b"built\n"
    assert boxed("/usr/bin/git", "init", "-q", "it").exit_code == 0
