"""What `show`, `explain` and `routes` say to a person: 20 lines, 80 columns, words of the field, no contradiction."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from cli import stories
from runs.real import alone, begin, event, make_repository

from pipeline.app.explanation import explain_run
from pipeline.app.run_list import list_runs
from pipeline.app.run_status import show_run
from pipeline.characters import columns
from pipeline.faces.cli.explain import explain_text
from pipeline.faces.cli.explain import whole_text as whole_explanation
from pipeline.faces.cli.routes import routes_text
from pipeline.faces.cli.runs import runs_text
from pipeline.faces.cli.show import log_text, show_text, whole_text
from pipeline.outcomes import Reason
from pipeline.vocabulary import Signal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeline.repo import Repository
    from pipeline.run.run import Run

pytestmark = pytest.mark.slow

WIDTH = 80
RIDDLES = re.compile(r"purse|\bvisit\b|epoch|[A-Z]\w+\(\w+=|driver|\b[0-9a-f]{12,}\b|paid from|\bunknown\b")


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    alone(monkeypatch, tmp_path / "home")
    return make_repository(tmp_path / "project")


@pytest.mark.parametrize("ending", stories.ENDINGS)
def test_a_run_is_told_in_20_lines_of_80_columns(repository: Repository, ending: Callable[[Repository], Run]) -> None:
    run = ending(repository)
    document, explained = show_run(run.folder, repository), explain_run(run.folder, repository)
    for text in (show_text(document, WIDTH), explain_text(explained, WIDTH)):
        lines = text.splitlines()
        assert len(lines) <= 20, text
        assert re.search(r"rest .*: redfirst (show|explain) run-GAL-39 -v$", lines[-1]), text
    told = [show_text(document), explain_text(explained), whole_text(document), whole_explanation(explained)]
    for text in told:
        own = [line for line in text.splitlines() if not line.strip().startswith(("start ", "git ", "next "))]
        own = [line for line in own if re.fullmatch(r"  [0-9a-f]{40}", line) is None]  # the list of commits
        assert [line for line in own if RIDDLES.search(line)] == []
    for text in (show_text(document, WIDTH), explain_text(explained, WIDTH), whole_explanation(explained, WIDTH)):
        wide = [line for line in text.splitlines() if columns(line) > WIDTH]
        assert all("redfirst " in line or "/" in line for line in wide), wide


def test_a_run_that_a_person_ended_does_not_say_what_else_ended_it(repository: Repository) -> None:
    run = stories.abandoned(repository)
    text = whole_text(show_run(run.folder, repository))
    assert "cancelled (abandoned)" in text
    assert "no answer: it was cut off" in text
    assert not re.search(r"died|asked again|because", text)
    assert "abandoned by a person" in explain_text(explain_run(run.folder, repository))


def test_what_was_kept_for_going_on_is_not_told_of_an_abandoned_run(repository: Repository) -> None:
    run = stories.interrupted(repository)
    run.decide(event(Signal.CANCELLED, note="the desk of 005 stays as it is"))
    assert "kept    the desk of 005" in show_text(show_run(run.folder, repository))
    assert "stays" in explain_text(explain_run(run.folder, repository))
    run.abandon()
    document = show_run(run.folder, repository)
    assert document.note == ""
    assert "exit code" not in show_text(document), "abandon itself ends with 0"
    for text in (show_text(document), explain_text(explain_run(run.folder, repository))):
        assert "abandoned" in text
        assert "stays" not in text


def test_a_run_that_a_person_stopped_is_paused_wherever_people_read_and_as_it_was_for_programs(
    repository: Repository,
) -> None:
    run = stories.interrupted(repository)
    run.decide(event(Signal.CANCELLED, note="the desk of 005 stays as it is"))
    shown, listed = show_run(run.folder, repository), list_runs(repository)
    (line,) = listed.runs
    told = [
        *(show_text(shown), whole_text(shown), runs_text(listed)),
        *(explain(explain_run(run.folder, repository)) for explain in (explain_text, whole_explanation)),
    ]
    assert [text for text in told if "paused" not in text or "cancelled" in text] == []
    assert (shown.outcome, shown.reason, line.outcome, line.status) == (
        *("cancelled", "interrupted"),
        *("cancelled", "paused"),
    )
    assert log_text(run.folder).splitlines()[-1].endswith("paused")
    assert "next    redfirst resume run-GAL-39" in show_text(shown)


def test_an_error_of_git_is_shown_in_lines(repository: Repository) -> None:
    run = begin(repository)
    run.decide(event(Signal.PRECONDITION, reason=Reason.ENVIRONMENT, note="git: it failed\nfatal: no \x1b room"))
    for text in (show_text(show_run(run.folder, repository)), explain_text(explain_run(run.folder, repository))):
        assert re.search(r"because  git: it failed\n +\| fatal: no \\x1b room\n", text), text


def test_the_matrix_fits_on_a_terminal() -> None:
    assert max(map(columns, routes_text(WIDTH).splitlines())) <= WIDTH
