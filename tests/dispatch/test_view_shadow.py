from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from dispatch.one_view import open_view

from pipeline.judge.policy.rights import ChangeKind
from pipeline.sandbox.views.manifest import Limits

if TYPE_CHECKING:
    from pipeline.sandbox.views.view import ShadowView

FILES = {
    "src/app.py": "a = 1\n",
    "src/run.sh": "#!/bin/sh\n",
    "tests/test_app.py": "def test(): ...\n",
    ".gitignore": "*.log\n",
}


def fill(folder: Path) -> None:
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "src/run.sh").chmod(0o755)
    (folder / "link").symlink_to("src/app.py")


@pytest.fixture
def view(tmp_path: Path) -> ShadowView:
    return open_view(fill, tmp_path / "view", workspace=Path("/view"), writable=True)


def sh(view: ShadowView, script: str) -> None:
    subprocess.run(["sh", "-e", "-c", script], cwd=view.host, check=True)


def seen(view: ShadowView) -> dict[str, ChangeKind]:
    return {change.path: change.kind for change in view.survey().changes}


@pytest.mark.broad(but_first=6)
@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo b >> src/app.py", {"src/app.py": ChangeKind.MODIFIED}),
        ("rm src/app.py", {"src/app.py": ChangeKind.DELETED}),
        ("mkdir -p a/b; echo x > a/b/c", {"a/b/c": ChangeKind.ADDED}),
        ("mkdir -p empty/folders", {}),
        ("touch src/app.py", {}),
        ("chmod 600 src/app.py", {}),
        ("echo evil > src/secret.log", {"src/secret.log": ChangeKind.ADDED}),
        ("chmod +x src/app.py", {"src/app.py": ChangeKind.MODE}),
        ("chmod u+s src/run.sh", {"src/run.sh": ChangeKind.MODE}),
        ("rm link; ln -s /etc link", {"link": ChangeKind.SYMLINK}),
        ("rm link; echo x > link", {"link": ChangeKind.TYPE}),
        ("rm src/app.py; mkdir src/app.py", {"src/app.py": ChangeKind.TYPE}),
        ("ln src/app.py src/twin.py", {"src/app.py": ChangeKind.HARDLINK, "src/twin.py": ChangeKind.HARDLINK}),
        ("mkfifo src/pipe", {"src/pipe": ChangeKind.SPECIAL}),
        (
            "printf 'b = 2\\n' > src/n; touch -r src/app.py src/n; mv src/n src/app.py",
            {"src/app.py": ChangeKind.MODIFIED},
        ),
        ("sed -i 's/$/\\r/' src/app.py", {"src/app.py": ChangeKind.MODIFIED}),
        ("git commit -q --allow-empty -m x; git add -A; git branch y", {}),
        ("mkdir sub; echo gitdir: /x > sub/.git", {"sub/.git": ChangeKind.ADDED}),
        ("mkdir -p x/objects x/refs; echo 'ref: refs/heads/m' > x/HEAD", {"x/HEAD": ChangeKind.REPOSITORY}),
    ],
)
def test_a_change_is_seen(view: ShadowView, script: str, expected: dict[str, ChangeKind]) -> None:
    sh(view, script)
    assert seen(view) == expected


def test_a_folder_replaced_by_a_link_is_seen_and_not_followed(view: ShadowView, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    sh(view, f"mv src src2; ln -s {tmp_path}/elsewhere src; echo x > src/app.py")
    found = seen(view)
    assert found["src"] is ChangeKind.SYMLINK
    assert found["src/app.py"] is ChangeKind.DELETED


@pytest.mark.parametrize(("new", "old"), [("SRC/new.py", "src"), ("src/App.py", "src/app.py"), ("Src/app.py", "src")])
def test_a_name_that_differs_only_by_case_collides(view: ShadowView, new: str, old: str) -> None:
    sh(view, f"mkdir -p $(dirname {new}); echo x > {new}")
    (change,) = view.survey().changes
    assert change.collides_with == old


@pytest.mark.slow
def test_a_path_deeper_than_the_system_can_name_is_refused_and_removed(view: ShadowView) -> None:
    folder = os.open(view.host / "src", os.O_RDONLY)
    for _ in range(400):
        os.mkdir("a" * 16, dir_fd=folder)
        below = os.open("a" * 16, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(os.open("end", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    os.close(folder)
    (change,) = view.survey().changes
    assert change.kind is ChangeKind.UNREADABLE
    assert "deep" in (change.detail or "")
    view.shadow.restore([change.path])
    assert seen(view) == {}
    view.close()
    assert not view.host.exists()


def test_a_huge_file_is_not_read(view: ShadowView) -> None:
    sh(view, "truncate -s 1T src/app.py")
    (change,) = view.survey().changes
    assert change.kind is ChangeKind.UNREADABLE
    assert "larger than" in (change.detail or "")


def test_too_many_bytes_and_too_many_files_are_refused(view: ShadowView) -> None:
    view.limits = Limits(file_bytes=100, total_bytes=150, entries=4)
    sh(view, "for i in 1 2 3 4 5 6; do head -c 90 /dev/zero > src/$i; done")
    kinds = seen(view)
    assert kinds["src/1"] is ChangeKind.ADDED
    assert kinds["src/2"] is ChangeKind.UNREADABLE
    assert kinds["src/6"] is ChangeKind.UNREADABLE


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_folder_without_permissions_is_reported_and_put_back(view: ShadowView) -> None:
    sh(view, "chmod 000 src")
    assert seen(view)["src"] is ChangeKind.UNREADABLE
    view.shadow.restore(seen(view))
    assert seen(view) == {}


@pytest.mark.parametrize(
    "script",
    [
        "rm -r src; ln -s /tmp src",
        "rm -r src; echo x > src",
        "rm src/app.py; mkdir -p src/app.py/deep; echo x > src/app.py/deep/er",
        "ln src/app.py twin; chmod +x src/app.py; rm link; mkfifo link",
        "mkdir -p new/tree; echo x > new/tree/file; ln -s /etc new/etc",
        "mkdir -p src/objects src/refs; echo 'ref: refs/heads/m' > src/HEAD",
        "chmod -x src/run.sh; rm -r tests; mv .gitignore x",
        "chmod 000 src",
    ],
)
def test_what_is_put_back_is_as_it_was(view: ShadowView, script: str, tmp_path: Path) -> None:
    sh(view, script)
    view.shadow.restore(seen(view))
    assert seen(view) == {}
    assert (view.host / "src/app.py").read_text() == FILES["src/app.py"]
    assert stat.S_IMODE((view.host / "src/run.sh").stat().st_mode) & 0o100


@pytest.mark.parametrize("script", ["mkfifo it", "ln -s src/app.py it", "mkdir it"])
def test_reading_what_is_no_regular_file_fails_at_once(view: ShadowView, script: str) -> None:
    sh(view, script)
    with pytest.raises(OSError, match="not a regular file"):
        view.read("it")


def test_closing_removes_everything_and_nothing_outside(view: ShadowView, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").write_text("x")
    sh(view, f"ln -s {outside} src/out; ln {outside}/keep hard")
    sh(view, "mkdir a; echo x > a/b; mkdir a/c; chmod 000 a/c; chmod 500 a")
    view.shadow.restore(["src/app.py"])
    view.close()
    view.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["outside"]
    assert (outside / "keep").read_text() == "x"
