from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from waiting import alive, own_nap

from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.process import BoxError, Command, Completed, Mount
from pipeline.sandbox.boxes.box import ProvableBox, open_box
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap
from pipeline.sandbox.boxes.limits import BOX_USER
from pipeline.sandbox.boxes.nobox import NoBox

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from collections.abc import Mapping

BWRAP = shutil.which("bwrap")
needs_bwrap = pytest.mark.skipif(BWRAP is None, reason="bubblewrap is not installed")
WORK = Path("/view")
OWNERS = [None, BOX_USER] if os.geteuid() == 0 else [None]


@pytest.fixture(params=[pytest.param("bwrap", marks=needs_bwrap), "none"])
def box(request: pytest.FixtureRequest) -> ProvableBox:
    return Bubblewrap(str(BWRAP)) if request.param == "bwrap" else NoBox()


@pytest.fixture
def bwrap() -> Bubblewrap:
    if BWRAP is None:
        pytest.skip("bubblewrap is not installed")
    return Bubblewrap(BWRAP)


def sh(
    box: ProvableBox,
    script: str,
    *mounts: Mount,
    cwd: Path = Path("/"),
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout_s: float = 20,
    output_limit: int = 4_000_000,
    network: str = "none",
) -> Completed:
    command = Command(("/bin/sh", "-c", script), cwd, mounts, env or {}, stdin, timeout_s, output_limit, network)
    return anyio.run(box.run, command)


@pytest.mark.parametrize("owner", OWNERS)
def test_a_command_has_the_signals_of_any_program(box: ProvableBox, owner: int | None) -> None:
    """A shell starts what runs in the background with SIGINT ignored, `nohup` with SIGHUP: a test may need them."""
    if owner is not None and isinstance(box, Bubblewrap):
        box = Bubblewrap(box.program, owner)
    ignored = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ignored}
    try:
        ended = sh(box, "grep -E 'Sig(Blk|Ign)' /proc/self/status")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    masks = {line.split(b":")[0]: int(line.split()[1], 16) for line in ended.stdout.splitlines()}
    expected = (*ignored, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGCHLD)
    assert [masks[b"SigBlk"] >> (number - 1) & 1 for number in expected] == [0] * len(expected)
    assert [masks[b"SigIgn"] >> (number - 1) & 1 for number in expected] == [0] * len(expected)
    assert [signal.getsignal(number) for number in ignored] == list(before.values())


def test_output_and_exit_code_come_back(box: ProvableBox) -> None:
    ended = sh(box, "cat; echo err >&2; exit 3", stdin=b"given")
    assert (ended.exit_code, ended.signal, ended.timed_out, ended.truncated) == (3, None, False, False)
    assert (ended.stdout, ended.stderr) == (b"given", b"err\n")


def test_a_signal_is_told_apart_from_an_exit_code(box: ProvableBox) -> None:
    ended = sh(box, "kill -SEGV $$")
    assert (ended.exit_code, ended.signal) == (None, signal.SIGSEGV)


def test_a_program_that_does_not_exist_is_an_exit_code_not_a_broken_box(box: ProvableBox) -> None:
    ended = anyio.run(box.run, Command(("/no/such/program",), Path("/")))
    assert ended.exit_code == 127
    assert b"/no/such/program" in ended.stderr


def test_a_working_folder_that_does_not_exist_is_a_broken_box(box: ProvableBox) -> None:
    with pytest.raises(BoxError):
        sh(box, "true", cwd=Path("/no/such/folder"))


def test_a_program_that_reads_nothing_is_not_waited_for(box: ProvableBox) -> None:
    assert sh(box, "exit 0", stdin=b"x" * 5_000_000).exit_code == 0


@pytest.fixture
def nap() -> str:
    return own_nap()


def test_the_time_limit_ends_children_and_daemons(box: ProvableBox, nap: str) -> None:
    ended = sh(box, f"setsid sleep {nap} >/dev/null 2>&1 & sleep {nap}", timeout_s=0.3)
    assert (ended.timed_out, ended.exit_code, ended.signal) == (True, None, None)
    assert ended.seconds < 10
    assert alive(nap) == {}


def test_a_daemon_does_not_outlive_its_command(box: ProvableBox, nap: str) -> None:
    ended = sh(box, f"setsid sleep {nap} & echo done")
    assert (ended.exit_code, ended.stdout, ended.timed_out) == (0, b"done\n", False)
    assert ended.seconds < 10, "the daemon holds stdout, which must not matter"
    assert alive(nap) == {}


def test_a_cancelled_command_is_dead(box: ProvableBox, nap: str) -> None:
    async def cancel() -> bool:
        with anyio.move_on_after(0.3) as scope:
            await box.run(Command(("/bin/sh", "-c", f"setsid sleep {nap} & sleep {nap}"), Path("/")))
        return scope.cancelled_caught

    assert anyio.run(cancel)
    assert alive(nap) == {}


def test_a_command_that_is_cancelled_at_once_leaves_nothing(box: ProvableBox, nap: str) -> None:
    async def cancel(delay: float) -> None:
        with anyio.move_on_after(delay):
            await box.run(Command(("/bin/sh", "-c", f"sleep {nap}"), Path("/")))

    for delay in (0.0, 0.001, 0.002, 0.004, 0.008):
        anyio.run(cancel, delay)
    assert alive(nap) == {}


def test_when_the_driver_is_killed_its_commands_die(box: ProvableBox, nap: str) -> None:
    if isinstance(box, NoBox) and shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    driver = f"""
import anyio
from pathlib import Path
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap
from pipeline.sandbox.boxes.limits import BOX_USER
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.process import Command
box = {f"Bubblewrap({BWRAP!r})" if isinstance(box, Bubblewrap) else f"{type(box).__name__}()"}
anyio.run(box.run, Command(("/bin/sh", "-c", "echo up > /dev/stderr; exec sleep {nap}"), Path("/"), timeout_s=60))
"""
    process = subprocess.Popen([sys.executable, "-c", driver], cwd=Path(__file__).parents[2])
    while f"sleep {nap}" not in (mine := alive(nap)).values():
        assert process.poll() is None, "the driver ended before its command ran"
    watched = [os.pidfd_open(pid) for pid in mine if pid != process.pid]
    process.kill()
    process.wait()

    async def gone() -> None:
        with anyio.fail_after(60):
            for pidfd in watched:
                await anyio.wait_readable(pidfd)

    anyio.run(gone)
    for pidfd in watched:
        os.close(pidfd)
    assert alive(nap) == {}


def test_huge_output_keeps_head_and_tail(box: ProvableBox) -> None:
    ended = sh(box, "echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last", output_limit=1000)
    assert ended.truncated
    assert ended.stdout.startswith(b"first\n")
    assert ended.stdout.endswith(b"\nlast\n")
    assert len(ended.stdout) < 1100
    assert b"bytes left out" in ended.stdout


def test_the_environment_is_fixed(box: ProvableBox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_USER", "x")
    ended = sh(box, "env", env={"GIVEN": "yes"})
    names = dict(line.split("=", 1) for line in ended.stdout.decode().splitlines())
    assert names["GIVEN"] == "yes"
    assert names["HOME"] != str(Path.home())
    assert names["LANG"] == "C.UTF-8"
    assert set(names) <= {
        "GIVEN", "HOME", "PATH", "TMPDIR", "LANG", "TERM", "USER", "SHELL", "PWD", "REDFIRST_BOX", "OLDPWD", "SHLVL",
        "_", "GIT_CONFIG_NOSYSTEM",
    }  # fmt: skip


def test_no_core_file_can_appear(box: ProvableBox) -> None:
    assert sh(box, "ulimit -c").stdout == b"0\n"


def test_what_a_command_leaves_in_its_home_is_gone(box: ProvableBox) -> None:
    assert sh(box, 'echo x > "$HOME/left"').exit_code == 0
    assert b"left" not in sh(box, 'ls -a "$HOME"').stdout


def test_a_writable_mount_can_be_written_and_a_read_only_one_cannot(bwrap: Bubblewrap, tmp_path: Path) -> None:
    for name in ("rw", "ro"):
        (tmp_path / name).mkdir()
    mounts = Mount(tmp_path / "rw", WORK, writable=True), Mount(tmp_path / "ro", Path("/data"))
    ended = sh(bwrap, "echo x > /view/new; echo x > /data/new", *mounts, cwd=WORK)
    assert ended.exit_code != 0
    assert b"Read-only file system" in ended.stderr
    assert (tmp_path / "rw/new").read_text() == "x\n"
    assert list((tmp_path / "ro").iterdir()) == []


@pytest.mark.parametrize(
    "path", ["/x", "/usr/x", "/etc/x", "/opt/x", "/var/x", "/proc/sys/kernel/x", "/dev/x", "/sys/x"]
)
def test_nothing_else_can_be_written(bwrap: Bubblewrap, path: str) -> None:
    assert sh(bwrap, f"echo x > {path}").exit_code != 0
    assert not Path(path).exists()


def test_the_kernels_settings_are_out_of_reach(bwrap: Bubblewrap) -> None:
    script = "test -w /proc/sys/kernel/core_pattern || test -w /proc/sysrq-trigger || test -w / || test -w /dev"
    assert sh(bwrap, script).exit_code == 1


def test_no_capability_and_no_new_namespace(bwrap: Bubblewrap) -> None:
    ended = sh(bwrap, "grep -E 'CapEff|NoNewPrivs' /proc/self/status; id -u; unshare -U true && echo nested")
    assert ended.stdout.split() == [b"CapEff:", b"0000000000000000", b"NoNewPrivs:", b"1", b"1000"]


def test_home_and_processes_of_the_host_are_hidden(bwrap: Bubblewrap) -> None:
    ended = sh(bwrap, f"ls -A {Path.home()} 2>&1; ls -d /proc/[0-9]* | wc -l; cat /etc/passwd")
    assert b"No such file" in ended.stdout or b"Permission denied" in ended.stdout
    assert b"agent:x:1000" in ended.stdout
    assert ended.stdout.count(b":x:") == 2


@pytest.mark.parametrize("owner", OWNERS)
def test_what_says_which_system_this_is_can_be_read_and_not_written(bwrap: Bubblewrap, owner: int | None) -> None:
    names = ("os-release", "debian_version", "alpine-release", "redhat-release", "timezone", "shells", "localtime")
    there = [name for name in names if Path("/etc", name).exists()]
    assert "os-release" in there
    read = sh(
        Bubblewrap(bwrap.program, owner), f"cd /etc; cat {' '.join(there)}; for f in *; do echo x >> $f; done 2>&1"
    )
    contents = b"".join(Path("/etc", name).read_bytes() for name in there)
    assert read.stdout.startswith(contents)
    assert sh(bwrap, "cd /etc; cat os-release").stdout == Path("/etc/os-release").read_bytes()


def test_what_tells_this_machine_from_others_is_made_up(bwrap: Bubblewrap) -> None:
    said = sh(bwrap, "cd /etc; cat hostname machine-id resolv.conf; hostname; ls shadow ssh ssl/private 2>/dev/null")
    assert said.stdout.decode().splitlines() == ["box", "b0" * 16, "nameserver 127.0.0.1", "box"]


def test_the_boxs_own_arguments_do_not_show_paths_of_the_host(bwrap: Bubblewrap, tmp_path: Path) -> None:
    ended = sh(bwrap, "cat /proc/1/cmdline", Mount(tmp_path, WORK), cwd=WORK)
    assert str(tmp_path).encode() not in ended.stdout


def test_no_network_by_default(bwrap: Bubblewrap) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        script = f"import socket; socket.create_connection(('127.0.0.1', {listener.getsockname()[1]}), 2)"
        python = shutil.which("python3", path="/usr/bin:/bin")
        if python is None:
            pytest.skip("the system has no python3")
        refused = anyio.run(bwrap.run, Command((python, "-c", script), Path("/")))
        allowed = anyio.run(bwrap.run, Command((python, "-c", script), Path("/"), network="open"))
    assert refused.exit_code == 1
    assert b"refused" in refused.stderr
    assert allowed.exit_code == 0


def test_a_network_that_the_box_does_not_know_is_refused(bwrap: Bubblewrap) -> None:
    with pytest.raises(BoxError, match="model"):
        sh(bwrap, "true", network="model")


@pytest.mark.parametrize("writable", [True, False])
def test_a_mount_over_the_view_gets_its_mount_point_and_leaves_none(
    bwrap: Bubblewrap, tmp_path: Path, writable: bool
) -> None:
    view, extra, single = tmp_path / "view", tmp_path / "env", tmp_path / "file"
    view.mkdir()
    extra.mkdir()
    (extra / "python").write_text("x")
    single.write_text("y")
    mounts = Mount(view, WORK, writable=writable), Mount(extra, WORK / "deep/.venv"), Mount(single, WORK / "one")
    ended = sh(bwrap, "cat deep/.venv/python one; ls -A", *mounts, cwd=WORK)
    assert ended.stdout == b"xydeep\none\n"
    assert list(view.iterdir()) == []


def test_a_link_in_the_way_of_a_mount_point_is_not_followed(bwrap: Bubblewrap, tmp_path: Path) -> None:
    view, extra = tmp_path / "view", tmp_path / "env"
    view.mkdir()
    extra.mkdir()
    (view / ".venv").symlink_to(tmp_path)
    with pytest.raises(BoxError, match="in the way"):
        sh(bwrap, "true", Mount(view, WORK, writable=True), Mount(extra, WORK / ".venv/lib"))
    assert not (tmp_path / "lib").exists()


def test_a_missing_mount_source_is_a_broken_box(bwrap: Bubblewrap, tmp_path: Path) -> None:
    with pytest.raises(BoxError, match="nowhere"):
        sh(bwrap, "true", Mount(tmp_path / "nowhere", WORK))


@needs_bwrap
def test_auto_opens_a_box_that_proved_itself() -> None:
    opened = anyio.run(open_box, "auto")
    assert opened.name == "bubblewrap"
    assert anyio.run(opened.canary).ok


@pytest.mark.parametrize("setting", ["auto", "bubblewrap"])
def test_without_bubblewrap_the_user_is_told_what_to_do(
    setting: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError) as caught:
        anyio.run(open_box, setting)
    assert caught.value.reason is Reason.CONFIG
    assert "apt install bubblewrap" in caught.value.message
    assert 'sandbox = "none" in your own configuration' in caught.value.message
    assert 'sandbox = "none"' in caught.value.message


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1", "AppArmor"),
        ("echo 'bwrap: Unknown option --disable-userns' >&2; exit 1", "0.8 or newer"),
        ("echo 'bwrap: No permissions to create new namespace' >&2; exit 1", "user namespaces"),
        ("exit 0", "bubblewrap ended with 0"),
    ],
)
def test_a_bubblewrap_that_does_not_hold_is_refused_with_advice(
    script: str, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(UserError, match="cannot be isolated") as caught:
        anyio.run(open_box, "bubblewrap")
    assert words in caught.value.message


WEAKER = """#!{python} -I
# A bwrap that is asked for less than it should be.
import os, sys
position = sys.argv.index("--args") + 1
words = os.read(int(sys.argv[position]), 1 << 20).decode().split("\\0")
{change}
args = os.memfd_create("weaker", 0)
os.write(args, "\\0".join(words).encode())
os.lseek(args, 0, 0)
os.set_inheritable(args, True)
sys.argv[position] = str(args)
os.execv("{bwrap}", ["{bwrap}", *sys.argv[1:]])
"""


@needs_bwrap
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("pass", ""),
        ("words.insert(1, '--share-net')", "reached a socket of the host"),
        ("at = words.index('--remount-ro'); words[at:at] = ['--bind', '{tmp}', '{tmp}']", "wrote outside its view"),
        ("at = words.index('--remount-ro'); words[at:at] = ['--ro-bind', '{home}', '{home}']", "of the home folder"),
        ("at = len(words) - 1 - words[::-1].index('/'); del words[at - 1:at + 1]", "may write /"),
        ("words[words.index('--uid') + 1] = '0'", "runs as root"),
    ],
)
def test_the_canary_finds_a_box_that_leaks(
    change: str, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home, temporary = tmp_path / "home", tmp_path / "tmp"
    home.mkdir()
    temporary.mkdir()
    (home / "secret").write_text("x")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    fake = tmp_path / "bwrap"
    weaker = change.replace("{tmp}", str(temporary)).replace("{home}", str(home))
    python = Path(sys.executable).resolve()
    fake.write_text(WEAKER.replace("{python}", str(python)).replace("{bwrap}", str(BWRAP)).replace("{change}", weaker))
    fake.chmod(0o755)
    proof = anyio.run(Bubblewrap(str(fake)).canary)
    assert proof.ok is (words == "")
    assert words in proof.why
