"""What the box shows of an agent that Node runs: its packages, never the user's home folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipeline.agents.backends.products import Bundle
from pipeline.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

BUNDLE = Bundle("gemini", "npm install -g @google/gemini-cli", "0.61.0")


def script(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_its_packages_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    script(tmp_path / "lib" / "node_modules" / "@google" / "gemini-cli" / "gemini.js")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gemini").symlink_to("../lib/node_modules/@google/gemini-cli/gemini.js")
    mounts = BUNDLE.program((), str(tmp_path / "bin")).mounts
    assert tmp_path / "lib" / "node_modules" in {mount.source for mount in mounts}
    assert tmp_path not in {mount.source for mount in mounts}


@pytest.mark.parametrize("folder", [".", ".."], ids=["home", "above"])
def test_a_script_in_the_home_folder_would_show_all_of_it(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    place = (home / folder).resolve()
    script(place / "gemini")
    with pytest.raises(UserError, match="which the box must hide"):
        BUNDLE.program((), str(place))
