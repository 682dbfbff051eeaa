"""Everything of a command is dead when it ends, however it ends; and honest projects are tested in this box."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from landlocked import PYTHON, needs_landlock, run, sh, writable

from pipeline.dispatch.landlock import Landlock
from pipeline.pids import pids
from pipeline.process import Command, Mount, SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [needs_landlock, pytest.mark.slow]

DAEMON = """
import os, sys
done, doing = os.pipe()
if os.fork():
    os.close(doing)
    os.read(done, 1)  # it is closed when the last of them is what it shall be
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
os.execve("/bin/sleep", ["sleep", sys.argv[1]], {})
"""
"""What leaves session, parent and environment behind."""


@pytest.fixture
def word(tmp_path: Path) -> str:
    """Return a time to sleep that nobody else sleeps."""
    return str(10_000_000 + int(hashlib.sha256(str(tmp_path).encode()).hexdigest()[:6], 16))


def sleeping(word: str) -> list[int]:
    found: list[int] = []
    for pid in pids():
        try:
            if Path(f"/proc/{pid}/cmdline").read_bytes() == f"sleep\0{word}\0".encode():
                found.append(pid)
        except OSError:
            continue
    return found


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"
        os.sched_yield()


def daemon(word: str, then: str) -> tuple[str, ...]:
    """Return a command that starts a daemon, waits until it runs, and goes on."""
    start = " ".join(shlex.quote(part) for part in PYTHON.argv("-I", "-c", DAEMON, word))
    return ("/bin/sh", "-c", f"{start}; {then}")


def boxed(*argv: str, timeout_s: float = 60) -> Command:
    return Command(argv, Path("/"), PYTHON.mounts, timeout_s=timeout_s)


def test_a_daemon_ends_with_its_command(word: str) -> None:
    ended = anyio.run(Landlock().run, boxed(*daemon(word, "exit 4")))
    assert (ended.exit_code, ended.signal) == (4, None)
    assert sleeping(word) == []


@pytest.mark.slow
def test_a_daemon_ends_when_the_time_is_up(word: str) -> None:
    ended = anyio.run(Landlock().run, boxed(*daemon(word, "sleep 60"), timeout_s=2))
    assert (ended.timed_out, ended.exit_code, ended.signal) == (True, None, None)
    assert sleeping(word) == []


def test_a_daemon_ends_when_its_command_is_cancelled(word: str) -> None:
    async def cancel() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Landlock().run, boxed(*daemon(word, "sleep 60")))
            while not sleeping(word):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()

    anyio.run(cancel)
    assert sleeping(word) == []


def test_a_daemon_ends_when_the_driver_is_killed(word: str) -> None:
    driver = f"""
import anyio
from pathlib import Path
from pipeline.dispatch.landlock import Landlock
from pipeline.process import Command
from pipeline.programs import locate
import sys
anyio.run(Landlock().run, Command({daemon(word, "sleep 60")!r}, Path("/"), locate(sys.executable).mounts, timeout_s=60))
"""
    process = subprocess.Popen([sys.executable, "-c", driver], cwd=Path(__file__).parents[2])
    until(lambda: sleeping(word) or process.poll() is not None)
    assert process.poll() is None
    process.kill()
    process.wait()
    until(lambda: not sleeping(word))


def supervisor_of(pid: int) -> int:
    """Return the process that has adopted *pid*; no other one may be signalled by these tests."""
    parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    assert b"landlock_launcher" in cmdline(parent)
    return parent


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_supervisor_that_is_told_to_end_takes_everything_with_it(word: str, number: int) -> None:
    async def tell() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ended)
            while not sleeping(word):
                await anyio.lowlevel.checkpoint()
            os.kill(supervisor_of(sleeping(word)[0]), number)

    async def ended() -> None:
        completed = await Landlock().run(boxed(*daemon(word, "sleep 60")))
        assert (completed.exit_code, completed.signal) == (None, signal.SIGKILL)

    anyio.run(tell)
    assert sleeping(word) == []


@pytest.mark.slow
def test_a_supervisor_that_is_killed_is_a_broken_box(word: str) -> None:
    left: list[int] = []

    async def kill() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(broken)
            while not sleeping(word):
                await anyio.lowlevel.checkpoint()
            left.extend(sleeping(word))
            os.kill(supervisor_of(left[0]), signal.SIGKILL)

    async def broken() -> None:
        with pytest.raises(SandboxError, match="may still run"):
            await Landlock().run(boxed(*daemon(word, "sleep 60")))

    try:
        anyio.run(kill)
    finally:
        for pid in left:
            os.kill(pid, signal.SIGKILL)  # the test's own daemon, which nobody else can end now


def test_the_command_cannot_end_its_supervisor(word: str) -> None:
    script = "kill -9 $PPID; kill -TERM $PPID; kill -STOP $PPID; echo still here"
    ended = sh(script, Path("/"))
    assert (ended.exit_code, ended.stdout) == (0, b"still here\n")
    assert ended.stderr.count(b"not permitted") == 3


CHAINS = """
import os, sys, time
for _ in range(int(sys.argv[2])):
    if os.fork():
        continue
    end, n = time.monotonic() + 20, 0
    while time.monotonic() < end:  # it ends by itself, should nobody end it
        if os.fork():
            os._exit(0)
        if sys.argv[3] == "leaving":
            os.setsid()
        n += 1
        if n == 50:
            open(sys.argv[1] + "/running", "w").close()
    open(sys.argv[1] + "/escaped", "w").close()
    os._exit(0)
"""


@pytest.mark.parametrize(("chains", "sessions"), [(1, "leaving"), (4, "leaving"), (4, "staying")])
def test_who_starts_the_next_process_and_ends_is_caught_all_the_same(
    chains: int, sessions: str, tmp_path: Path
) -> None:
    start = " ".join(
        shlex.quote(part) for part in PYTHON.argv("-I", "-c", CHAINS, str(tmp_path), str(chains), sessions)
    )
    script = f"{start} & until [ -e running ]; do sleep 0.01; done; exit 5"
    ended = run("/bin/sh", "-c", script, cwd=tmp_path, mounts=(*PYTHON.mounts, writable(tmp_path)))
    assert ended.exit_code == 5
    assert ended.seconds < 15
    marker = str(tmp_path).encode()
    assert [pid for pid in pids() if pid != os.getpid() and marker in cmdline(pid)] == []
    assert not (tmp_path / "escaped").exists()


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_many_processes_end_quickly(tmp_path: Path) -> None:
    ended = sh("i=0; while [ $i -lt 300 ]; do sleep 61 & i=$((i+1)); done; exit 6", tmp_path)
    assert ended.exit_code == 6
    assert ended.seconds < 20


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGTERM, signal.SIGABRT])
def test_a_signal_comes_back_as_it_was(number: int) -> None:
    ended = sh(f"kill -{number} $$", Path("/"))
    assert (ended.exit_code, ended.signal) == (None, number)


@pytest.mark.parametrize("code", [0, 1, 126, 137, 139, 255])
def test_an_exit_code_comes_back_as_it_was(code: int) -> None:
    ended = sh(f"exit {code}", Path("/"))
    assert (ended.exit_code, ended.signal) == (code, None)


HONEST = """
import asyncio, os, shutil, socket, stat, subprocess, sys, tempfile, threading


def test_what_tests_do(tmp_path):
    path = tmp_path / "x"
    path.write_text("x")
    path.chmod(0o755)
    shutil.copy2(path, tmp_path / "y")
    shutil.copytree(tmp_path, tmp_path.parent / "copy")
    assert os.access(tmp_path / "y", os.X_OK)
    thread = threading.Thread(target=path.read_text)
    thread.start()
    thread.join()
    assert subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True).stdout == b"1\\n"
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o500)
        os.chmod(folder, 0o700)

    async def run():
        process = await asyncio.create_subprocess_exec("/bin/true")
        return await process.wait()

    assert asyncio.run(run()) == 0
"""


def test_a_pytest_project_is_green(tmp_path: Path) -> None:
    (tmp_path / "test_honest.py").write_text(HONEST)
    argv = PYTHON.argv("-m", "pytest", "-q", "-p", "no:cacheprovider")
    ended = run(*argv, cwd=tmp_path, mounts=(*PYTHON.mounts, writable(tmp_path)))
    assert ended.exit_code == 0, ended.stdout.decode() + ended.stderr.decode()


@pytest.mark.slow
def test_a_cargo_project_with_a_build_script_is_green(tmp_path: Path) -> None:
    toolchains = Path(os.environ.get("RUSTUP_HOME", Path.home() / ".rustup")) / "toolchains"
    toolchain = next((folder for folder in sorted(toolchains.glob("*")) if (folder / "bin/cargo").exists()), None)
    if toolchain is None or shutil.which("cc", path="/usr/bin:/bin") is None:
        pytest.skip("there is no Rust here")
    (tmp_path / "src").mkdir()
    (tmp_path / "Cargo.toml").write_text('[package]\nname = "tiny"\nversion = "0.1.0"\nedition = "2021"\n')
    (tmp_path / "build.rs").write_text('fn main() { println!("cargo:rustc-env=MADE=yes"); }\n')
    (tmp_path / "src/main.rs").write_text(
        'fn main() { println!("{}", env!("MADE")); }\n#[test]\nfn it() { std::thread::spawn(|| ()).join().unwrap(); }\n'
    )
    mounts = (Mount(toolchain, toolchain), writable(tmp_path))
    script = f"export PATH={toolchain}/bin:$PATH; cargo test --offline && cargo run --offline -q"
    ended = sh(script, tmp_path, *mounts, timeout_s=300)
    assert ended.exit_code == 0, ended.stderr.decode()
    assert b"1 passed" in ended.stdout
    assert ended.stdout.endswith(b"yes\n")
