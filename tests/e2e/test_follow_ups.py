"""What a run saw and did not do: filed as sub-issues, once, with where it comes from (ADR-11, contract 3).

The issues are in another folder than the usual one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from e2e.lanes import Played, finding, go_on, play, resolved, review
from e2e.shapes import SUMS, SUMS_HONEST, sums_project
from kit import ISSUE

if TYPE_CHECKING:
    from kit import Entry

pytestmark = pytest.mark.slow

EPIC = """---
id: EPIC-1
title: Better greetings
status: Todo
parent: null
labels: [feature]
depends-on: []
---
# EPIC-1: Better greetings

## Sub-issues
- [ ] [GAL-1](GAL-1.md) Reject empty names
"""
README = "# Issues\n\n## Core\n- [ ] [EPIC-1](EPIC-1.md) Better greetings\n"


def child(number: int, title: str, status: str) -> str:
    head = f"id: GAL-1.{number}\ntitle: {title}\nstatus: {status}\nparent: GAL-1\nlabels: [bug]\ndepends-on: []\n"
    return f"---\n{head}---\n# GAL-1.{number}: {title}\n"


TRACKER = {
    **{path: text for path, text in SUMS.items() if not path.startswith("TODO/")},
    "redfirst.toml": '[tracker]\nfolder = "issues"\n',
    "issues/README.md": README,
    "issues/EPIC-1.md": EPIC,
    "issues/GAL-1.md": ISSUE.replace("parent: null", "parent: EPIC-1")
    + "\n## Sub-issues\n- [ ] [GAL-1.1](GAL-1.1.md) Greeting a list fails\n- [x] [GAL-1.2](GAL-1.2.md) No docs\n",
    "issues/GAL-1.1.md": child(1, "Greeting a list fails", "Todo"),
    "issues/GAL-1.2.md": child(2, "No docs", "Done"),
}


def seeing(entry: Entry, *titles: str) -> Entry:
    """Return the answer with bugs that its agent saw on the way."""
    seen = [{"title": title, "description": f"{title}: seen on the way."} for title in titles]
    return {**entry, "report": {**entry["report"], "out_of_scope": seen}}


PLAN, _, PLAN_SIMPLE, SPLIT, SPLIT_ACCEPTED, TESTS, MAKE, _, RESULT_SIMPLE = SUMS_HONEST
ADVICE: dict[str, Any] = {"findings": [{"title": "Use a guard clause", "simpler": "one `if`"}]}
SCRIPT: list[Entry] = [
    seeing(PLAN, "Bug of the first draft, which the plan mends now", "Bug of the planner"),
    seeing(review("review-plan", "NEEDS WORK", finding("Mend that, too", "HIGH")), "greeting  a list FAILS!"),
    PLAN_SIMPLE,
    seeing(PLAN, "Bug of the planner"),
    review("review-plan", "ACCEPTABLE", prior=resolved("plan-1-01")),
    {**PLAN_SIMPLE, "report": {**PLAN_SIMPLE["report"], **ADVICE}},
    SPLIT,
    SPLIT_ACCEPTED,
    seeing(TESTS, "Bug of the tester", "Bug of the planner"),
    seeing(MAKE, "No docs"),
    seeing(review("review-result", "ACCEPTABLE", finding("Rename it one day", "LOW")), "Bug of the reviewer"),
    seeing(RESULT_SIMPLE, "Bug of the simplifier"),
]


@pytest.fixture(scope="module")
def parked(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Return the run before anything of it is published."""
    project = sums_project(tmp_path_factory.mktemp("seen"), files=TRACKER)
    return play(project, SCRIPT, "--approve", "commit", extra='sandbox = "none"\n')


@pytest.fixture(scope="module")
def before(parked: Played) -> dict[str, str]:
    """Return the tracker files in the user's worktree while the run holds the issue."""
    folder = parked.project.root / "issues"
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


@pytest.fixture(scope="module")
def published(parked: Played, before: dict[str, str]) -> Played:
    assert before
    return go_on(parked, "approve")


def shown(played: Played, name: str) -> str:
    return played.project.git("show", f"work:issues/{name}")


@pytest.mark.broad
def test_an_issue_in_progress_shows_in_its_parent_at_once(before: dict[str, str]) -> None:
    assert "status: In Progress" in before["GAL-1.md"]
    assert "- [~] [GAL-1](GAL-1.md) Reject empty names" in before["EPIC-1.md"]
    assert before["README.md"] == README, "a sub-issue is listed in its parent only"
    assert set(before) == {name.removeprefix("issues/") for name in TRACKER if name.startswith("issues/")}


def test_what_any_role_saw_becomes_a_sub_issue_with_its_provenance(published: Played) -> None:
    assert published.document.get("outcome") == "completed", published.document["_stderr"]
    filed = {name: shown(published, f"{name}.md") for name in published.document["follow_ups"]}
    titles = {
        name: next(line.removeprefix("title: ") for line in text.splitlines() if line.startswith("title: "))
        for name, text in filed.items()
    }
    assert titles == {
        "GAL-1.3": "Bug of the planner",
        "GAL-1.4": "Bug of the tester",
        "GAL-1.5": "No docs",
        "GAL-1.6": "Bug of the reviewer",
        "GAL-1.7": "Bug of the simplifier",
    }
    for text in filed.values():
        assert "labels: [bug]" in text
        assert "parent: GAL-1" in text
        assert "status: Todo" in text
    assert "Seen by @orchestrator in run-GAL-1, 004-plan-orchestrator." in filed["GAL-1.3"]
    assert "Bug of the tester: seen on the way." in filed["GAL-1.4"]


def test_what_is_open_already_is_not_filed_again_and_what_is_done_is(published: Played) -> None:
    listed = [line for line in shown(published, "GAL-1.md").splitlines() if line.startswith("- [") and "GAL-1." in line]
    assert listed[:3] == [
        "- [ ] [GAL-1.1](GAL-1.1.md) Greeting a list fails",
        "- [x] [GAL-1.2](GAL-1.2.md) No docs",
        "- [ ] [GAL-1.3](GAL-1.3.md) Bug of the planner",
    ]
    assert len(listed) == 7


@pytest.mark.broad
def test_the_done_issue_shows_in_its_parent_and_all_is_one_commit(published: Played) -> None:
    assert "- [x] [GAL-1](GAL-1.md) Reject empty names" in shown(published, "EPIC-1.md")
    assert shown(published, "README.md") == README.strip()
    assert "status: Done" in shown(published, "GAL-1.md")
    assert "status: Todo" in shown(published, "EPIC-1.md")
    changed = published.project.git("show", "--name-only", "--format=", "work").splitlines()
    assert changed == ["issues/EPIC-1.md", *(f"issues/GAL-1.{n}.md" for n in range(3, 8)), "issues/GAL-1.md"]
    lint = published.project.redfirst("issue", "lint")
    assert lint.returncode == 0, lint.stdout + lint.stderr


def test_advice_is_recorded_in_the_summary_and_never_filed(published: Played) -> None:
    summary = published.artifact("summary.md")
    assert "Use a guard clause" in summary
    assert "Rename it one day" in summary
    assert published.document["advisory"] == ["plan-2-s01: Use a guard clause", "final-1-01: Rename it one day"]
    added, deleted, path = published.project.git("show", "--numstat", "--format=", "work~1", "--", "greet.sum").split()
    assert f"- `{path}`, {added} line(s) added, {deleted} deleted" in summary
    filed = "".join(shown(published, f"{name}.md") for name in published.document["follow_ups"])
    assert "Rename it one day" not in filed
    assert "guard clause" not in filed
