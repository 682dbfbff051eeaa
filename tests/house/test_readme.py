"""README is short, and its pictures show the console as it is: no file that makes these two pages is another by now."""

from __future__ import annotations

import hashlib
from typing import Final

from house.documents import README, ROOT

IMAGES: Final = ROOT / "docs" / "img"
MOST_BYTES: Final = 200_000
MOST_LINES: Final = 120


def test_it_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def test_no_file_that_makes_a_shown_page_has_changed_since_the_pictures_were_made() -> None:
    lines = [line.split() for line in (IMAGES / "made-from.txt").read_text(encoding="utf-8").splitlines()]
    assert len(lines) > 5
    changed = [name for was, name in lines if hashlib.sha256((ROOT / name).read_bytes()).hexdigest() != was]
    assert not changed, "make the pictures again and look at them: scripts/make-pictures.py"


def test_the_pictures_are_shown_and_small() -> None:
    pictures = sorted(IMAGES.glob("*.png"))
    assert len(pictures) == 2
    for picture in pictures:
        assert f"](docs/img/{picture.name})" in README.read_text(encoding="utf-8")
        assert picture.stat().st_size < MOST_BYTES
