"""A repository with some trees, the views of a run in it, and what a folder is compared by: everything."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

from dispatch.one_view import open_view
from runs.real import git, make_repository

from pipeline.run.checkout import PrivateCheckout
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap
from pipeline.sandbox.views.manifest import scan
from pipeline.sandbox.views.view import ShadowView
from pipeline.sandbox.views.views import Views

Facts = tuple[object, ...]

FILES = {
    "app.py": "one\n",
    "empty": "",
    "src/a.py": "a\n",
    "src/b.py": "b\n",
    "src/deep/er/c.py": "c\n",
    "tests/test_a.py": "t\n",
    "kept.log": "tracked although ignored\n",
    "line\nbreak": "x\n",
}
TREES = (
    ":",
    "echo two > app.py; echo a2 > src/a.py; echo n > src/new.py",
    "rm -r src/deep; rm empty; chmod +x src/b.py; echo x > one; mkdir -p lib; echo l > lib/l.py",
    "rm -r src; echo now a file > src; rm app.py; mkdir app.py; echo now a folder > app.py/inner; ln -s src link",
    "rm kept.log; ln -s /etc/passwd kept.log; echo longer >> 'line\nbreak'; ln -s src deep; ln -s ../app.py src/up",
)
"""What makes each tree out of the first."""


class Place:
    """A repository with some trees, and the views of a run in it."""

    def __init__(self, folder: Path) -> None:
        self.repository = make_repository(folder / "project", FILES)
        (self.repository.worktree / ".gitignore").write_text("*.log\nbuild/\n")
        git(self.repository.worktree, "add", ".gitignore")
        git(self.repository.worktree, "commit", "--quiet", "--message", "ignore")
        self.trees = tuple(self.commit(script) for script in TREES)
        self.checkout = PrivateCheckout(self.repository, folder / "state")
        self.views = Views(self.checkout, Bubblewrap("bwrap"), overlay=False)

    def commit(self, script: str) -> str:
        top = self.repository.worktree
        subprocess.run(["sh", "-e", "-c", script], cwd=top, check=True)
        git(top, "add", "--all", "--force")
        tree = git(top, "write-tree")
        git(top, "reset", "--quiet", "--hard", "HEAD")
        git(top, "clean", "-ffdxq")
        return tree

    def open(self, tree: str) -> ShadowView:
        view = self.views.open(tree, writable=True)
        assert isinstance(view, ShadowView)
        return view

    def copies(self) -> list[Path]:
        return sorted(self.checkout.pool("shadows" if self.views.fault else "lowers").iterdir())


def sh(view: ShadowView, script: str) -> None:
    subprocess.run(["bash", "-c", script], cwd=view.host, check=False, capture_output=True)


def use(view: ShadowView, script: str) -> None:
    """Do what a dispatch does."""
    sh(view, script)
    view.survey()
    view.close()


def facts(path: Path, began_ns: int) -> Facts:
    status = path.lstat()
    kind, mode = stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode)
    attributes = tuple(sorted(os.listxattr(path, follow_symlinks=False)))
    is_of_now = status.st_mtime_ns >= began_ns
    if kind == stat.S_IFDIR:
        return kind, mode, attributes, is_of_now
    content = os.fsencode(path.readlink()) if kind == stat.S_IFLNK else path.read_bytes()
    return kind, mode, attributes, is_of_now, status.st_nlink, content


def state(top: Path, began_ns: int) -> dict[str, Facts]:
    """Return everything that is below a folder, as the system tells it; of the decoy only what git makes of it."""
    found = {".": facts(top, began_ns)}
    for at, folders, names in os.walk(top):
        if Path(at) == top and ".git" in folders:
            folders.remove(".git")
        for path in (Path(at, name) for name in (*folders, *names)):
            found[str(path.relative_to(top))] = facts(path, began_ns)
    return found


def decoy(top: Path) -> dict[str, bytes]:
    asked = ("rev-parse HEAD", "status --porcelain --ignored", "fsck --strict", "config --list --local", "diff --stat")
    said = {words: git(top, *words.split()).encode() for words in asked}
    return said | {str(path.name): path.read_bytes() for path in (top / ".git").iterdir() if path.name == "HEAD"}


def check(view: ShadowView, place: Place, tree: str, began_ns: int) -> None:
    """Compare a view that is open with a fresh copy of the same tree."""
    fresh_folder = place.checkout.new_folder("fresh")
    fresh = open_view(
        lambda folder: place.checkout.fill(tree, folder), fresh_folder, workspace=Path("/view"), writable=True
    )
    assert view.survey().changes == ()
    assert state(view.host, began_ns) == state(fresh.host, began_ns)
    assert decoy(view.host) == decoy(fresh.host)
    assert view.shadow.base == scan(view.host) == fresh.shadow.base
    fresh.close()
