"""DESIGN.md shows the matrix that the program has: its generated blocks are compared with what is generated now."""

from __future__ import annotations

from pathlib import Path

from pipeline.routing.render import block_names, blocks, refresh

DESIGN = Path(__file__).parents[2] / "DESIGN.md"
NAMES = ["matrix", "bounds", "pipeline", "phase7", "issue-lifecycle"]
MEND = (
    'renew DESIGN.md with: python -c "from pathlib import Path; from pipeline.routing.render import refresh; '
    "p = Path('DESIGN.md'); p.write_text(refresh(p.read_text()))\""
)


def test_every_block_is_in_the_document_once() -> None:
    assert sorted(block_names(DESIGN.read_text(encoding="utf-8"))) == sorted(NAMES)


def test_every_generated_block_is_expected() -> None:
    assert list(blocks()) == NAMES


def test_the_document_shows_what_the_program_does() -> None:
    text = DESIGN.read_text(encoding="utf-8")
    assert text == refresh(text), MEND
