"""The form of commit messages: what is built, what a pattern refuses, and what needs trust."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pipeline.config.commits import TYPES, Commits, misfits, styled
from pipeline.config.load import load
from pipeline.config.sources import RepositoryFile
from pipeline.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.config.load import Loaded

OURS = "feat: refuse empty names\n\n- it raises\n\nIssue: GAL-1\nRun-Id: run-GAL-1\n"
WHO = "Ada <ada@example.org>"


def loaded(tmp_path: Path, text: str) -> Loaded:
    file = RepositoryFile("redfirst.toml", text.encode(), tracked=True)
    return load(tmp_path, environ={"HOME": str(tmp_path)}, repo_file=file)


def test_a_ticket_a_footer_and_a_sign_off_are_put_where_they_belong() -> None:
    rules = Commits(sign_off=True, subject="{issue}: {type}: {title}", footers=("Refs: {issue}",))
    subject, _, rest = styled(OURS, rules, "GAL-1", WHO).partition("\n")
    assert subject == "GAL-1: feat: refuse empty names"
    assert rest.endswith(f"\n\nIssue: GAL-1\nRun-Id: run-GAL-1\nRefs: GAL-1\nSigned-off-by: {WHO}\n")


def test_a_long_title_makes_room_for_what_is_around_it() -> None:
    rules = Commits(subject="{issue}: {title} ({type})")
    subject = styled("feat: " + "word " * 20 + "\n\nIssue: G-1\n", rules, "GAL-1234", WHO).partition("\n")[0]
    assert len(subject) <= 72
    assert re.fullmatch(r"GAL-1234: (word )+word\.\.\. \(feat\)", subject)


def test_a_pattern_is_held_against_each_type_of_our_commits() -> None:
    assert misfits(Commits(), "GAL-1") == ()
    assert len(misfits(Commits(pattern=r"^GAL-\d+: "), "GAL-1")) == len(TYPES)
    assert misfits(Commits(pattern=r"^GAL-\d+: ", subject="{issue}: {type}: {title}"), "GAL-1") == ()
    assert misfits(Commits(pattern="^(feat|fix|test|docs|refactor|chore)(\\(.*\\))?: "), "GAL-1") == (
        "style: take what it says",
    )
    assert misfits(Commits(pattern="^\\w+(\\(\\w+\\))?: [a-z]"), "GAL-1", ("Upper",))


@pytest.mark.parametrize(
    "text",
    ['subject = "{type}"', 'pattern = "("', 'footers = ["no footer"]', 'footers = ["Refs: x\\nY"]', "sign_off = 1"],
)
def test_what_cannot_be_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError, match="commits"):
        loaded(tmp_path, f"[commits]\n{text}\n")


def test_a_certificate_in_the_users_name_needs_trust(tmp_path: Path) -> None:
    found = loaded(tmp_path, '[commits]\nsign_off = true\npattern = "."\nsubject = "{issue} {title}"\n')
    assert [item.key for item in found.widening] == ["commits.sign_off", "commits.pattern"]
    assert loaded(tmp_path, "[commits]\nsign_off = false\n").widening == ()
