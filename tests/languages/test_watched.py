"""A process that is started watched stays what it is; what it starts is its own affair."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pipeline.testing.languages.runners.exec_guard import Watch, start

BECOMES = "import os; os.execv('/bin/echo', ['echo', 'forged'])"
WAYS = {
    "by a path": BECOMES,
    "by a descriptor": """
import os
os.execve(os.open('/bin/echo', os.O_RDONLY), ['echo', 'forged'], os.environ)
""",
    "from memory": """
import os
made = os.memfd_create('it')
os.write(made, open('/bin/echo', 'rb').read())
os.execve(made, ['echo', 'forged'], os.environ)
""",
    "itself": "import os, sys; os.execv('/proc/self/exe', ['python', '-c', 'print(\"forged\")'])",
    "in another thread": f"""
import threading
thread = threading.Thread(target=lambda: exec({BECOMES!r}))
thread.start()
thread.join()
raise SystemExit(1)
""",
    "after its children": f"import subprocess; subprocess.run(['/bin/true']); subprocess.run(['/bin/true']); {BECOMES}",
    "at once in many threads": f"""
import threading
threads = [threading.Thread(target=lambda: exec({BECOMES!r})) for _ in range(20)]
for thread in threads: thread.start()
for thread in threads: thread.join()
raise SystemExit(1)
""",
}
STARTS = {
    "with vfork": "import subprocess; print(subprocess.check_output(['/bin/echo', 'honest'], text=True), end='')",
    "with fork": """
import os
if not os.fork():
    os.execv('/bin/echo', ['echo', 'honest'])
os.wait()
""",
    "with posix_spawn": "import os; os.waitpid(os.posix_spawn('/bin/echo', ['echo', 'honest'], os.environ), 0)",
    "in a thread": """
import subprocess, threading
thread = threading.Thread(target=lambda: subprocess.run(['/bin/echo', 'honest']))
thread.start()
thread.join()
""",
    "a shell that becomes another program": """
import subprocess
subprocess.run(['/bin/sh', '-c', 'exec /bin/sh -c "exec /bin/echo honest"'])
""",
    "itself": """
import os
if not os.fork():
    os.execv('/proc/self/exe', ['python', '-c', 'print("honest")'])
os.wait()
""",
    "many at once": """
import subprocess, sys
many = [subprocess.Popen([sys.executable, '-S', '-c', 'import os; os.execv("/bin/true", ["true"])']) for _ in range(40)]
print('honest' if not any(one.wait() for one in many) else 'refused')
""",
    "one that does not exist": """
import subprocess
try:
    subprocess.run(['/nowhere'])
except FileNotFoundError:
    print('honest')
""",
}


ASKS = """
import os
while True:
    try:
        os.execv('/bin/true', ['true'])
    except OSError:
        os.write(1, b'x')
"""
NESTED = """
import subprocess, sys
sys.path.insert(0, {root!r})
from pipeline.testing.languages.runners.exec_guard import start
process, watch = start(['/bin/echo', 'honest'], stdout=subprocess.PIPE)
print(process.communicate()[0].decode(), watch.off, end='')
"""


def ran(code: str, *, watched: bool = True) -> tuple[int, str, Watch]:
    """Return how a program of Python ended, what it printed, and what it asked for."""
    process, watch = start(
        [sys.executable, "-c", code],
        watched=watched,
        ends=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    said, _ = process.communicate()
    return process.returncode, said.decode(), watch


@pytest.mark.broad(but_first=2)
@pytest.mark.parametrize("way", WAYS)
def test_no_process_becomes_another_program(way: str) -> None:
    code, said, watch = ran(WAYS[way])
    assert (code, said, watch.replaced, watch.off) == (1, "", True, "")


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize("way", WAYS)
def test_unwatched_each_of_them_does(way: str) -> None:
    code, said, watch = ran(WAYS[way], watched=False)
    assert (code, said, watch.replaced) == (0, "forged\n", False)


@pytest.mark.broad(but_first=2)
@pytest.mark.parametrize("way", STARTS)
@pytest.mark.slow
def test_a_process_starts_what_it_likes(way: str) -> None:
    code, said, watch = ran(STARTS[way])
    assert (code, said) == (0, "honest\n")
    assert not watch.replaced


def test_which_thread_ends_it_is_noticed() -> None:
    at_work = "import os, threading; threading.Thread(target=lambda: os._exit(0)).start(); threading.Event().wait()"
    assert ran(at_work)[2].left_aside
    assert not ran("import os; os._exit(0)")[2].left_aside
    children = "import os\nif not os.fork():\n    os._exit(0)\nos.wait()"
    assert not ran(children)[2].left_aside


def test_a_process_has_no_more_open_files_than_otherwise() -> None:
    look = "import os; print(sorted(os.listdir('/proc/self/fd')))"
    assert ran(look)[1] == ran(look, watched=False)[1]


def test_what_outlives_a_process_still_starts_others(tmp_path: Path) -> None:
    read, write = os.pipe()
    waits = f"import os, subprocess; os.read({read}, 1); subprocess.run(['/bin/sh', '-c', 'echo x > {tmp_path}/done'])"
    leaves = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {waits!r}], close_fds=False)"
    ended, alive = os.pipe()
    process, _ = start([sys.executable, "-c", leaves], pass_fds=(read, alive), start_new_session=True)
    os.close(alive)
    assert process.wait() == 0
    os.write(write, b"x")
    os.read(ended, 1)  # nobody holds the other end any more
    assert (tmp_path / "done").exists()
    for one in (read, write, ended):
        os.close(one)


@pytest.mark.slow
def test_a_process_that_is_killed_while_it_asks_leaves_nothing_behind() -> None:
    before = threading.active_count()
    for _ in range(6):
        process, _ = start([sys.executable, "-c", ASKS], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.read(1)
        process.kill()
        process.stdout.close()
        assert process.wait() == -signal.SIGKILL
    for thread in threading.enumerate():
        if thread.daemon:
            thread.join(10)
    assert threading.active_count() <= before


def test_what_cannot_be_started_says_so() -> None:
    with pytest.raises(FileNotFoundError):
        start(["/nowhere"])
    with pytest.raises(NotADirectoryError):
        start(["/bin/true"], cwd="/dev/null")


def test_a_kernel_that_cannot_do_it_twice_is_told_of() -> None:
    code, said, watch = ran(NESTED.format(root=str(Path.cwd())))
    assert (code, watch.replaced) == (0, False)
    assert said == "honest\n Device or resource busy"
