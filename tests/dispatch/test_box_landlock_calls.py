"""What the supervisor does in a confined process's place: inside everything, outside nothing, and no way around."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest
from landlocked import CALLS, needs_landlock, read_only, said, sh, writable

from pipeline.dispatch.seccomp import SUPERVISED

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, needs_landlock]
CHANGING = sorted(SUPERVISED & set(CALLS))

# How each call is made on a path, on an open file, and on a folder with a path in it.
MAKE = """
import struct
times = ctypes.create_string_buffer(struct.pack("=qqqq", 1000, 0, 2000, 0), 32)
seconds = ctypes.create_string_buffer(struct.pack("=qq", 1000, 2000), 16)


def change(name, path, folder=-100, fd=None, flags=0):
    path = os.fsencode(path)
    return {
        "chmod": lambda: call("chmod", path, 0o700),
        "fchmod": lambda: call("fchmod", fd, 0o700),
        "fchmodat": lambda: call("fchmodat", folder, path, 0o700),
        "fchmodat2": lambda: call("fchmodat2", folder, path, 0o700, flags),
        "chown": lambda: call("chown", path, os.getuid(), os.getgid()),
        "lchown": lambda: call("lchown", path, os.getuid(), os.getgid()),
        "fchown": lambda: call("fchown", fd, os.getuid(), os.getgid()),
        "fchownat": lambda: call("fchownat", folder, path, os.getuid(), os.getgid(), flags),
        "utime": lambda: call("utime", path, seconds),
        "utimes": lambda: call("utimes", path, times),
        "futimesat": lambda: call("futimesat", folder, path, times),
        "utimensat": lambda: call("utimensat", folder, path, times, flags),
    }[name]()
"""


@pytest.fixture
def view(tmp_path: Path) -> Path:
    (tmp_path / "view").mkdir()
    (tmp_path / "view/file").write_text("x")
    (tmp_path / "view/file").chmod(0o644)
    return tmp_path / "view"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Return a folder that can be read, so that a descriptor of what is in it can be had."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").write_text("x")
    return tmp_path / "outside"


def looks(path: Path) -> list[tuple[int, int, int, int, int]]:
    """Return mode, owners and change times of a folder and what is in it: what no attack may have touched."""
    stats = [each.stat() for each in (path, *sorted(path.iterdir()))]
    return [(each.st_mode, each.st_uid, each.st_gid, each.st_mtime_ns, each.st_ctime_ns) for each in stats]


@pytest.mark.parametrize("name", CHANGING)
def test_a_call_has_its_effect_on_what_is_writable(name: str, view: Path) -> None:
    number = said(MAKE + f"say(change({name!r}, 'file', fd=os.open('file', os.O_RDONLY)))", view, writable(view))
    assert number == 0
    after = (view / "file").stat()
    if "chmod" in name:
        assert stat.S_IMODE(after.st_mode) == 0o700
    if "time" in name:
        assert (after.st_atime, after.st_mtime) == (1000, 2000)
    if "chown" in name:
        assert (after.st_uid, after.st_gid) == (os.getuid(), os.getgid())


@pytest.mark.parametrize("name", CHANGING)
def test_no_call_has_one_elsewhere_by_any_way(name: str, view: Path, outside: Path) -> None:
    (view / "link").symlink_to(outside / "file")
    (view / "folder").symlink_to(outside)
    before = looks(outside)
    script = (
        MAKE
        + f"""
target, name = given + "/file", {name!r}
fd, top, itself = os.open(target, os.O_RDONLY), os.open(given, os.O_RDONLY), os.open(target, os.O_PATH)
answers = [
    change(name, target, fd=fd), change(name, "../outside/file", fd=itself), change(name, "folder/.", fd=top),
    change(name, "folder/file", fd=fd), change(name, "/proc/self/fd/%d" % fd, fd=fd),
    change(name, "/proc/self/fd/%d" % itself, fd=fd), change(name, "/dev/fd/%d" % fd, fd=fd),
    change(name, "/proc/%d/fd/%d" % (os.getpid(), fd), fd=fd), change(name, "/proc/self/root" + target, fd=fd),
    change(name, "/proc/self/cwd/../outside/file", fd=fd), change(name, "../outside/../outside/file", fd=fd),
    change(name, "/proc/thread-self/fd/%d/file" % top, fd=fd), change(name, given, fd=top), change(name, "..", fd=top),
    change(name, "", folder=itself, fd=itself, flags=0x1000), change(name, "", folder=fd, fd=fd, flags=0x1000),
]
if name != "lchown":
    answers.append(change(name, "link", fd=fd))
if "at" in name:
    answers.append(change(name, "file", folder=top))
if name == "fchmodat2":
    answers.append(change(name, "link", flags=0x100))
os.chdir(given)
answers += [change(name, "file", fd=fd), change(name, ".", fd=top), change(name, "", fd=fd, flags=0x1000)]
if name in ("utimensat", "futimesat"):
    answers += [call(name, fd, 0, times, 0), call(name, top, 0, 0, 0)]
say(answers)
"""
    )
    answers = said(script, view, writable(view), read_only(outside), given=str(outside))
    assert 0 not in answers, answers
    assert looks(outside) == before


def test_extended_attributes_are_what_the_file_system_does_not_have(view: Path, outside: Path) -> None:
    script = """
target = given + "/file"
fd = os.open(target, os.O_RDONLY)
say([tried(os.setxattr, "file", "user.x", b"1"), tried(os.setxattr, target, "user.x", b"1"),
     tried(os.setxattr, fd, "user.x", b"1"), tried(os.removexattr, target, "user.x"),
     tried(os.setxattr, target, "user.x", b"1", follow_symlinks=False)])
"""
    answers = said(script, view, writable(view), read_only(outside), given=str(outside))
    assert set(answers) == {"ENOTSUP"} or set(answers) == {"EOPNOTSUPP"}
    assert os.listxattr(outside / "file") == []


def test_flags_of_a_file_cannot_be_set_by_ioctl(view: Path, outside: Path) -> None:
    script = """
import struct
fd = os.open(given + "/file", os.O_RDONLY)
say([tried(fcntl.ioctl, fd, request, struct.pack("l", 0x80)) for request in (0x40086602, 0x40046602, 0x401C5820)])
"""
    assert said(script, view, writable(view), read_only(outside), given=str(outside)) == ["ENOTTY"] * 3


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("'chmod' if 'chmod' in numbers else 'fchmodat', 1, 0o700", "EFAULT"),
        ("'fchmodat', -100, b'nothing', 0o700", "ENOENT"),
        ("'fchmodat', -100, b'', 0o700", "ENOENT"),
        ("'fchmodat', -100, b'x' * 300, 0o700", "ENAMETOOLONG"),
        ("'fchmodat', -100, b'x/' * 2100, 0o700", "ENAMETOOLONG"),
        ("'fchmodat', 77, b'file', 0o700", "EBADF"),
        ("'fchmodat', -5, b'file', 0o700", "EBADF"),
        ("'fchmod', 77, 0o700", "EBADF"),
        ("'fchmod', -1, 0o700", "EBADF"),
        ("'fchmodat', os.open('file', 0), b'x', 0o700", "ENOTDIR"),
        ("'utimensat', -100, b'file', 1, 0", "EFAULT"),
        ("'utimensat', -100, b'file', -1, 0", "EFAULT"),
        ("'fchownat', -100, b'file', 12345, 12345, 0", "EPERM"),
        ("'fchmod', 1, 0o700", "EPERM"),
    ],
)
def test_a_call_that_makes_no_sense_fails_as_the_kernel_would_have_it(call: str, expected: str, view: Path) -> None:
    assert said(f"say(errno.errorcode[call({call})])", view, writable(view)) == expected
    assert stat.S_IMODE((view / "file").stat().st_mode) == 0o644


def test_a_link_itself_can_get_times_and_what_it_points_to_stays(view: Path, outside: Path) -> None:
    (view / "link").symlink_to(outside / "file")
    before = looks(outside)
    script = "say([tried(os.utime, 'link', (1, 2), follow_symlinks=False), tried(os.chown, 'link', -1, -1, follow_symlinks=False)])"  # noqa: E501
    assert said(script, view, writable(view), read_only(outside)) == ["done", "done"]
    assert (view / "link").lstat().st_mtime == 2
    assert looks(outside) == before


def test_who_races_the_supervisor_hits_nothing_outside(view: Path, outside: Path) -> None:
    before = looks(outside)
    script = """
import signal, time


def swap():
    while True:
        os.symlink(given + "/file", "new")
        os.rename("new", "x")
        os.link("file", "new")
        os.rename("new", "x")
        os.symlink(given, "y")
        os.unlink("y")
        os.mkdir("y")
        os.link("file", "y/file")
        os.unlink("y/file")
        os.rmdir("y")


swapper = os.fork()
if swapper == 0:
    swap()
hits, tries, end = set(), 0, time.monotonic() + 20
while time.monotonic() < end and (tries < 3000 or not {"done", "EPERM"} <= hits):
    hits |= {tried(os.chmod, path, 0o700) for path in ("x", "y/file")}
    tries += 1
os.kill(swapper, signal.SIGKILL)
os.waitpid(swapper, 0)
say(sorted(hits))
"""
    answers = said(script, view, writable(view), read_only(outside), given=str(outside))
    assert {"done", "EPERM"} <= set(answers), "only the file or only the link was ever there: this was no race"
    assert looks(outside) == before


def test_a_file_without_a_name_is_still_its_own(view: Path) -> None:
    script = """
import tempfile
file = tempfile.TemporaryFile(dir=".")
os.fchmod(file.fileno(), 0o640)
say(os.fstat(file.fileno()).st_mode & 0o777)
"""
    assert said(script, view, writable(view)) == 0o640


def test_a_folder_with_the_same_beginning_is_another(view: Path) -> None:
    other = view.with_name("view-of-others")
    other.mkdir(mode=0o755)
    assert said("say(tried(os.chmod, given, 0o700))", view, writable(view), given=str(other)) == "EPERM"


def test_threads_ask_for_themselves(view: Path) -> None:
    script = """
import threading
names = [f"{n}" for n in range(32)]
threads = [threading.Thread(target=lambda n=n: (open(n, "w").close(), os.chmod(n, 0o711))) for n in names]
[t.start() for t in threads]
[t.join() for t in threads]
say([os.stat(n).st_mode & 0o777 for n in names])
"""
    assert said(script, view, writable(view)) == [0o711] * 32


def test_what_tools_do_with_modes_and_times_works(view: Path) -> None:
    script = """set -e
chmod +x file; touch -d @5 file; cp -p file kept; cp -a file all; install -m 750 file placed; ln -s file link
touch -h -d @7 link; mkdir -m 700 deep; tar -cf t.tar file link deep; mkdir out; tar -xpf t.tar -C out
chown "$(id -u):$(id -g)" file; chmod -R u+rwX out; chmod 0 deep; chmod 755 deep; mv out moved
"""
    ended = sh(script, view, writable(view))
    assert ended.exit_code == 0, ended.stderr.decode()
    assert ended.stderr == b""
    assert [(view / name).stat().st_mtime for name in ("file", "kept", "all", "moved/file")] == [5] * 4
    assert stat.S_IMODE((view / "placed").stat().st_mode) == 0o750
