"""What of a person's files is their work, and what their tools built there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.agents.backends.layout import Difference, copy_back, manifest_of

if TYPE_CHECKING:
    from pathlib import Path


def write(top: Path, **files: str) -> Path:
    for name, text in files.items():
        path = top / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return top


def test_files_that_were_there_count_also_where_they_are_ignored(tmp_path: Path) -> None:
    view = write(tmp_path / "view", build__kept_txt="old", build__gone_txt="x", app_py="a", lib__app_py="a")
    write(view, _gitignore="build/\n*.o\n")
    desk = write(tmp_path / "desk", build__kept_txt="new", build__new_o="x", build__sub__more_txt="x", app_py="a")
    write(desk, _gitignore="build/\n*.o\n", lib__app_py="a", lib__app_o="x", asked_o="x")
    found = Difference.at(desk, manifest_of(view), {"asked.o"})
    assert (found.changed, found.removed) == (("asked.o", "build/kept.txt"), ("build/gone.txt",))
    assert found.left_out == ("build/new.o", "build/sub/", "lib/app.o")
    assert copy_back(desk, view, {"asked.o"}) == found
    assert sorted(manifest_of(view)) == [".gitignore", "app.py", "asked.o", "build/kept.txt", "lib/app.py"]


def test_neither_a_repository_at_the_desk_nor_the_users_own_rules_are_asked(tmp_path: Path) -> None:
    desk = write(tmp_path / "desk", app_py="a", notes_txt="x")
    write(
        desk, _git__info__exclude="*.txt\n", _git__HEAD="ref: refs/heads/none\n", _git__objects__x="", _git__refs__x=""
    )
    assert Difference.at(desk, {}, ()).changed == ("app.py", "notes.txt")
