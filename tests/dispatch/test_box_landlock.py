"""What a command in the Landlock box can reach. Every attack is aimed at the test's own files and processes."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from landlocked import needs_landlock, read_only, run, said, sh, writable

from pipeline.dispatch import canary
from pipeline.dispatch.landlock import Landlock
from pipeline.dispatch.nobox import NoBox
from pipeline.process import Command, Mount, Namespaces, SandboxError

pytestmark = [pytest.mark.slow, needs_landlock]

NODE = "require('child_process').execFileSync('/bin/true'); const f = require('fs'); f.copyFileSync('a', 'c'); f.chmodSync('c', 0o755); f.utimesSync('c', 1, 2)"  # noqa: E501


@pytest.fixture
def view(tmp_path: Path) -> Path:
    (tmp_path / "view").mkdir()
    return tmp_path / "view"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("secret")
    return tmp_path / "outside"


def test_it_proves_itself_here() -> None:
    box = Landlock()
    assert anyio.run(box.canary).ok
    assert (box.name, box.maps_paths, box.networks) == ("landlock", False, frozenset({"none"}))


def test_the_proof_is_one_that_a_box_without_rules_does_not_pass() -> None:
    proof = anyio.run(lambda: canary.prove(NoBox(), root=True))
    assert not proof.ok


def test_a_writable_mount_can_be_changed_and_a_read_only_one_only_read(view: Path, outside: Path) -> None:
    script = f"cat {outside}/secret; mkdir a; echo x > a/b; mv a c; ln -s b c/d; rm c/b; echo x > {outside}/new"
    ended = sh(script, view, writable(view), read_only(outside))
    assert (ended.exit_code, ended.stdout) == (2, b"secret")
    assert [path.name for path in view.rglob("*")] == ["c", "d"]
    assert [path.name for path in outside.iterdir()] == ["secret"]


@pytest.mark.parametrize(
    "script",
    [
        "cat {0}/secret",
        "ls {0}",
        "echo x > {0}/secret",
        ": >> {0}/secret",
        "truncate -s 0 {0}/secret",
        "echo x > {0}/new",
        "mkdir {0}/new",
        "rm {0}/secret",
        "mv {0}/secret .",
        "mv {0}/secret {0}/other",
        "mkfifo {0}/new",
        "ln -s x {0}/new",
        "ln {0}/secret here && echo x > here",
        "ln -s {0}/secret link && cat link",
        "ln -s {0} link && echo x > link/new",
        "cp /bin/true run && mv run {0}/run",
    ],
)
def test_what_is_not_mounted_can_neither_be_read_nor_changed(script: str, view: Path, outside: Path) -> None:
    ended = sh(script.format(outside), view, writable(view))
    assert ended.exit_code != 0
    assert b"secret" not in ended.stdout
    assert [path.name for path in outside.iterdir()] == ["secret"]
    assert (outside / "secret").read_text() == "secret"
    assert (outside / "secret").stat().st_nlink == 1


@pytest.mark.parametrize(
    "script", ["ln {0}/secret here && echo x > here", "mv {0}/secret here", "cp -l {0}/secret here"]
)
def test_a_read_only_file_does_not_become_writable_by_another_name(script: str, view: Path, outside: Path) -> None:
    assert sh(script.format(outside), view, writable(view), read_only(outside)).exit_code != 0
    assert (outside / "secret").read_text() == "secret"
    assert (outside / "secret").stat().st_nlink == 1


def test_nothing_of_the_system_can_be_opened_for_writing(view: Path) -> None:
    kernel = ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/self/oom_score_adj"]
    folders = ["/", "/usr", "/etc", "/dev", "/dev/shm", str(view.parents[2])]  # noqa: S108  (opened, never written)
    script = "say([p for p in given if tried(os.open, p, os.O_WRONLY | os.O_TMPFILE * os.path.isdir(p)) == 'done'])"
    assert said(script, view, writable(view), given=kernel + folders) == []


def test_the_users_home_and_the_hosts_secrets_cannot_be_listed_or_read(view: Path) -> None:
    paths = [
        str(Path.home()),
        "/root",
        "/home",
        str(view.parent),
        "/var",
        "/etc",
        "/etc/shadow",
        "/etc/ssl/private",
        "/sys",
    ]
    script = "say({p: tried(os.listdir if os.path.isdir(p) else open, p) for p in given if os.path.exists(p)})"
    assert set(said(script, view, writable(view), given=paths).values()) == {"EACCES"}


def test_it_has_a_home_of_its_own_that_is_gone_afterwards(view: Path) -> None:
    ended = sh('echo x > "$HOME/a" && chmod 0 "$HOME" && echo "$HOME"', view, writable(view))
    assert ended.exit_code == 0
    assert not Path(ended.stdout.decode().strip()).exists()


def test_user_0_has_no_rights_left(view: Path) -> None:
    ended = sh("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status", view, writable(view))
    lines = dict(line.split(":\t") for line in ended.stdout.decode().splitlines())
    if os.getuid() == 0:
        assert {lines[f"Cap{kind}"] for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
    else:
        assert lines["CapEff"] == "0" * 16
    assert (lines["NoNewPrivs"], lines["Seccomp"]) == ("1", "2")


def test_a_namespace_cannot_be_made(view: Path) -> None:
    for option in ("-U", "-r", "-m", "-n"):
        assert sh(f"unshare {option} true", view, writable(view)).exit_code != 0


def test_nothing_but_the_standard_streams_is_inherited(view: Path) -> None:
    assert said("say(sorted(os.listdir('/proc/self/fd')))", view, writable(view)) == ["0", "1", "2", "3"]


def test_what_the_box_runs_does_not_say_where_things_are(view: Path, outside: Path) -> None:
    ended = sh("cat /proc/$PPID/cmdline", view, writable(view), read_only(outside))
    assert ended.stdout
    assert str(view.parent).encode() not in ended.stdout


def test_processes_outside_cannot_be_looked_into(view: Path) -> None:
    victim = subprocess.Popen(["/bin/sleep", "60"], env={"SECRET": "x"})
    try:
        names = ["environ", "mem", "maps", "fd/0", "cwd", "root", "exe", "io", "auxv", "stack", "syscall"]
        script = f"say([n for n in given for p in [{victim.pid}, os.getppid()] if tried(lambda: open('/proc/%s/%s' % (p, n), 'rb').read(1)) == 'done'])"  # noqa: E501
        assert said(script, view, writable(view), given=names) == []
        assert said("say(open('/proc/self/environ').read())", view, writable(view))
    finally:
        victim.kill()
        victim.wait()


def test_processes_outside_can_neither_be_signalled_nor_slowed_down(view: Path) -> None:
    victim = subprocess.Popen(["/bin/sleep", "60"])
    script = f"""
import resource, signal
say({{who: [
    tried(os.kill, pid, 0), tried(os.kill, pid, signal.SIGCONT), tried(os.killpg, pid, 0),
    tried(signal.pidfd_send_signal, os.pidfd_open(pid), signal.SIGCONT),
    tried(resource.prlimit, pid, resource.RLIMIT_CPU, (60, 60)),
    tried(os.setpriority, os.PRIO_PROCESS, pid, 1),
    tried(os.sched_setaffinity, pid, {{0}}),
    tried(os.sched_setscheduler, pid, os.SCHED_BATCH, os.sched_param(0)),
    errno.errorcode[call("ioprio_set", 1, pid, 3 << 13)],
] for who, pid in (("victim", {victim.pid}), ("supervisor", os.getppid()))}})
"""
    try:
        answers = said(script, view, writable(view))
        assert set(answers["victim"]) <= {"EPERM", "ESRCH"}, answers  # it leads no group
        assert set(answers["supervisor"]) <= {"EPERM", "ESRCH"}
        assert victim.poll() is None
        assert os.getpriority(os.PRIO_PROCESS, victim.pid) == os.getpriority(os.PRIO_PROCESS, 0)
    finally:
        victim.kill()
        victim.wait()


def test_a_process_may_still_care_for_itself(view: Path) -> None:
    script = """
import resource
say([tried(resource.setrlimit, resource.RLIMIT_CPU, (60, 60)), tried(os.nice, 1), tried(os.sched_setaffinity, 0, os.sched_getaffinity(0))])
"""  # noqa: E501
    assert said(script, view, writable(view)) == ["done"] * 3


KINDS = {"d": socket.SOCK_DGRAM, "s": socket.SOCK_STREAM, "q": socket.SOCK_SEQPACKET}


def test_no_socket_reaches_anything(view: Path) -> None:
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        for name, kind in KINDS.items():
            local = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
            local.bind(str(view / name))
            if kind is not socket.SOCK_DGRAM:
                local.listen()
        script = f"""
import socket
pair = lambda kind: socket.socketpair(socket.AF_UNIX, kind)[0]
say([
    tried(lambda: socket.create_connection(("127.0.0.1", {server.getsockname()[1]}), 2)),
    tried(lambda: socket.socket(socket.AF_UNIX)), tried(lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)),
    tried(lambda: pair(socket.SOCK_DGRAM).sendto(b"x", "d")), tried(lambda: pair(socket.SOCK_RAW).sendto(b"x", "d")),
    tried(lambda: pair(socket.SOCK_STREAM).connect("s")), tried(lambda: pair(socket.SOCK_SEQPACKET).connect("q")),
    tried(lambda: pair(socket.SOCK_STREAM).bind("new")),
])
"""
        assert said(script, view, writable(view)) == ["EPERM"] * 5 + ["EISCONN"] * 2 + ["EACCES"]


def test_connected_pairs_work(view: Path) -> None:
    script = "import socket; a, b = socket.socketpair(); a.send(b'x'); say(b.recv(1).decode())"
    assert said(script, view, writable(view)) == "x"


def test_memory_and_queues_of_other_processes_of_the_user_are_out_of_reach(view: Path) -> None:
    script = """
from multiprocessing.shared_memory import SharedMemory
say([call("shmget", 1, 4096, 0o600), call("semget", 1, 1, 0o600), call("msgget", 1, 0o600),
     call("mq_open", b"redfirst-test", os.O_RDONLY, 0, 0), tried(SharedMemory, "redfirst-test", True, 1)])
"""
    assert said(script, view, writable(view)) == [1, 1, 1, 1, "EACCES"]


@pytest.mark.parametrize("network", ["model", "open", "lan"])
def test_a_network_is_refused_in_a_sentence(network: str, view: Path) -> None:
    with pytest.raises(SandboxError, match=f"no network.*{network}"):
        anyio.run(Landlock().run, Command(("/bin/true",), view, network=network))


def test_a_view_of_another_namespace_is_refused(view: Path) -> None:
    mount = Mount(view, view, writable=True, within=Namespaces(0, 0))
    with pytest.raises(SandboxError, match="overlay"):
        anyio.run(Landlock().run, Command(("/bin/true",), view, (mount,)))


def test_a_missing_mount_source_is_a_broken_box(view: Path) -> None:
    with pytest.raises(SandboxError, match="nowhere"):
        sh("true", view, writable(view / "nowhere"))


def test_a_single_file_can_be_writable(view: Path, outside: Path) -> None:
    ended = sh(
        f"echo new > {outside}/secret; chmod 600 {outside}/secret; echo x > {outside}/x",
        view,
        writable(outside / "secret"),
    )
    assert ended.exit_code == 2
    assert (outside / "secret").read_text() == "new\n"
    assert (outside / "secret").stat().st_mode & 0o777 == 0o600


WITHOUT = """
import ctypes, struct, sys
rules = b"".join(struct.pack("=HBBI", *rule) for rule in [
    (0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x00050000 | 38), (0x06, 0, 0, 0x7FFF0000)
])
buffer = ctypes.create_string_buffer(rules, len(rules))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, struct.pack("HxxxxxxP", len(rules) // 8, ctypes.addressof(buffer)), 0, 0) == 0
import anyio
from pathlib import Path
from pipeline.dispatch.landlock import Landlock
from pipeline.process import Command, SandboxError
print(anyio.run(Landlock().canary))
try:
    anyio.run(Landlock().run, Command(("/bin/true",), Path("/")))
except SandboxError as error:
    print(error)
"""


def test_a_kernel_without_landlock_offers_no_such_box() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    )
    proof, error = ended.stdout.splitlines()
    assert "ok=False" in proof
    assert "Linux 6.12" in proof
    assert "offers no Landlock" in error


@pytest.mark.parametrize("argv", [("node", "-e", NODE), ("git", "diff", "--no-index", "a", "b")])
def test_honest_tools_work(argv: tuple[str, ...], view: Path) -> None:
    found = shutil.which(argv[0], path="/usr/local/bin:/usr/bin:/bin")
    if found is None:
        pytest.skip(f"{argv[0]} is not installed")
    (view / "a").write_text("x")
    (view / "b").write_text("x")
    ended = run(found, *argv[1:], cwd=view, mounts=(writable(view),))
    assert ended.exit_code == 0, ended.stderr.decode()
