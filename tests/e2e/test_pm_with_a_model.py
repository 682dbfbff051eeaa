"""@pm with a model: it finds words for what a run files, and a finished run never depends on them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from crashes import KILLED, Result, die_at, problems, repeated_dispatches
from e2e.lanes import Played, play
from kit import AFTER_MAKE, FILES, HONEST, ISSUE, MAKE, PLAN, PLAN_ACCEPTED, PLAN_SIMPLE, SPLIT, SPLIT_ACCEPTED, TESTS
from kit import make_project as make

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry, Project

pytestmark = [pytest.mark.slow, pytest.mark.broad]

MODEL = ("--agent", "pm=scripted")


def other(issue_id: str, title: str, status: str, label: str) -> str:
    head = f"id: {issue_id}\ntitle: {title}\nstatus: {status}\nparent: null\nlabels: [{label}]\ndepends-on: []\n"
    return f"---\n{head}---\n# {issue_id}: {title}\n"


TRACKER = {
    **FILES,
    "TODO/README.md": "# Issues\n\n## Core\n- [ ] [GAL-1](GAL-1.md) Reject empty names\n"
    "- [ ] [GAL-7](GAL-7.md) Greet lists\n- [x] [GAL-8](GAL-8.md) Say goodbye\n",
    "TODO/GAL-1.md": ISSUE + "\n## Sub-issues\n- [ ] [GAL-1.1](GAL-1.1.md) Bug four\n",
    "TODO/GAL-1.1.md": other("GAL-1.1", "Bug four", "Todo", "bug").replace("parent: null", "parent: GAL-1"),
    "TODO/GAL-7.md": other("GAL-7", "Greet lists", "Todo", "api"),
    "TODO/GAL-8.md": other("GAL-8", "Say goodbye", "Done", "docs"),
}


def make_tracked(tmp_path: Path) -> Project:
    """Return the project; its one sub-issue is what the planner will see as bug four."""
    return make(tmp_path, TRACKER)


def seeing(entry: Entry, *titles: str) -> Entry:
    seen = [{"title": title, "description": f"{title}: seen on the way."} for title in titles]
    return {**entry, "report": {**entry["report"], "out_of_scope": seen}}


WORK: list[Entry] = [
    seeing(PLAN, "Bug one", "Bug two", "Bug three", "Bug four"),
    PLAN_ACCEPTED,
    PLAN_SIMPLE,
    SPLIT,
    SPLIT_ACCEPTED,
    TESTS,
    MAKE,
    *AFTER_MAKE,
]
BODY = "It fails.\n\n---\nid: GAL-99\n---\n\n## Sub-issues\n- [ ] [GAL-99](GAL-99.md) Mine\n\n- [ ] it does not fail\n"


def issue(item: int | str, title: str, **more: Any) -> dict[str, Any]:
    return {"item": item, "title": title, **more}


def words(*issues: dict[str, Any], **more: Any) -> Entry:
    return {"when": {"role": "pm", "kind": "follow-ups"}, "report": {"issues": list(issues), **more}}


GOOD = words(
    issue(1, 'Import: "accepts" # names', body=BODY, labels=["bug", "api"]),
    issue("2", "Greeting a list fails", duplicate_of="GAL-7"),
    issue(4, "The fourth bug in other words"),
    out_of_scope=[{"title": "Bug of the wording", "description": "Seen while reading."}],
)
BAD = words(issue(1, "One", labels=["wontfix"]))


def shown(project: Project, name: str) -> str:
    return project.git("show", f"work:TODO/{name}.md")


def decision(project: Project) -> dict[str, Any]:
    found = [line["data"] for line in project.journal() if line["data"].get("row") == "publish/PUBLISHED"]
    return found[-1]


def asked(project: Project) -> int:
    return sum(line["kind"] == "dispatch_started" and line["data"]["role"] == "pm" for line in project.journal())


@pytest.fixture(scope="module")
def worded(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Return a run whose first answer about words did not count."""
    played = play(make_tracked(tmp_path_factory.mktemp("worded")), [*WORK, BAD, GOOD], *MODEL)
    assert played.document.get("outcome") == "completed", played.document["_stderr"]
    return played


def test_the_words_are_pms_and_the_filing_is_ours(worded: Played) -> None:
    project = worded.project
    assert worded.document["follow_ups"] == ["GAL-1.2", "GAL-1.3", "GAL-1.4"]
    first = shown(project, "GAL-1.2")
    assert "title: 'Import: \"accepts\" # names'" in first or 'title: "Import: \\"accepts\\" # names"' in first
    assert "labels: [bug, api]" in first
    assert "parent: GAL-1\n" in first
    assert "Seen by @orchestrator in run-GAL-1, 001-plan-orchestrator. Worded by @pm." in first
    assert "- [ ] it does not fail" in first
    lint = project.redfirst("issue", "lint")
    assert lint.returncode == 0, lint.stdout + lint.stderr
    assert "GAL-99" not in shown(project, "README")


def test_what_it_leaves_out_and_what_it_saw_itself_are_filed_by_rule(worded: Played) -> None:
    assert "title: Bug three" in shown(worded.project, "GAL-1.3")
    assert "Worded by" not in shown(worded.project, "GAL-1.3")
    assert "title: Bug of the wording" in shown(worded.project, "GAL-1.4")
    assert "Seen by @pm in run-GAL-1, " in shown(worded.project, "GAL-1.4")


def test_what_is_open_already_is_not_filed_under_other_words(worded: Played) -> None:
    filed = "".join(shown(worded.project, name) for name in worded.document["follow_ups"])
    assert "fourth bug" not in filed
    assert "Greeting a list fails" not in filed
    for told in (worded.artifact("summary.md"), decision(worded.project)["event"]["note"]):
        assert "not filed, by @pm a duplicate of GAL-7: Bug two" in told
        assert "@pm left out 'Bug three': filed by rule" in told


def test_it_was_asked_again_with_the_reason_and_shown_what_there_is(worded: Played) -> None:
    first, second = worded.dispatches("publish", role="pm")
    assert "accepted: bug, api, docs" in second.document["reask"]
    assert second.document["attempt"] == 2
    assert second.document["write"] == []
    items = json.loads(first.text("items"))
    assert [(item["item"], item["label"], item["title"]) for item in items] == [
        (number, "bug", f"Bug {word}") for number, word in enumerate(("one", "two", "three", "four"), 1)
    ]
    existing = {found["id"]: found for found in json.loads(first.text("existing_issues"))}
    assert set(existing) == {"GAL-1.1", "GAL-7", "GAL-8"}, "the issue of the run is Done when this is published"
    assert (existing["GAL-8"]["status"], existing["GAL-8"]["file"]) == ("Done", "TODO/GAL-8.md")
    assert f"dispatches/{second.folder.name}/result.json" in decision(worded.project)["evidence"]
    assert (problems(worded.project), repeated_dispatches(worded.project)) == ([], [])


def test_a_driver_that_dies_after_the_answer_publishes_the_same_words_and_asks_nobody(
    tmp_path: Path, worded: Played
) -> None:
    project = make_tracked(tmp_path)
    project.use_script([*WORK, BAD, GOOD])
    answered = len(WORK) + 2
    assert die_at(project, "after journal dispatch_finished", answered, "run", "GAL-1", *MODEL) == KILLED
    assert die_at(project, "after replace worded.json", 1, "resume", "GAL-1", *MODEL) == KILLED
    assert die_at(project, "after git commit-tree", 1, "resume", "GAL-1", *MODEL) == KILLED
    document = project.document("resume", "GAL-1")  # from here on the words are kept; no model is needed
    assert (document["_code"], document["outcome"]) == (0, "completed"), document["_stderr"]
    assert Result.of(project).tree == Result.of(worded.project).tree
    assert asked(project) == 2
    assert (problems(project), repeated_dispatches(project)) == ([], [])


def test_two_answers_that_do_not_count_leave_it_to_the_rule(tmp_path: Path) -> None:
    played = play(make_tracked(tmp_path), [*WORK, BAD, words(issue(9, "Nine"))], *MODEL)
    assert (played.document["_code"], played.document["outcome"]) == (0, "completed"), played.document["_stderr"]
    titles = [shown(played.project, name).split("title: ")[1].splitlines()[0] for name in played.document["follow_ups"]]
    assert titles == ["Bug one", "Bug two", "Bug three"]
    assert asked(played.project) == 2
    for told in (played.artifact("summary.md"), decision(played.project)["event"]["note"]):
        assert "@pm did not answer (MALFORMED): filed by rule" in told
    assert not [row for row in played.rows if row.startswith("any/")]


def test_one_that_takes_too_long_is_not_asked_again(tmp_path: Path) -> None:
    slow = {**GOOD, "sleep_s": 600}
    played = play(make_tracked(tmp_path), [*WORK, slow], *MODEL, "--set", "agents.pm.timeout_s=1")
    assert (played.document["_code"], played.document["outcome"]) == (0, "completed"), played.document["_stderr"]
    assert len(played.document["follow_ups"]) == 3
    assert asked(played.project) == 1
    assert "@pm did not answer (TIMED_OUT): filed by rule" in played.artifact("summary.md")


def test_with_nothing_to_file_nobody_is_asked(tmp_path: Path) -> None:
    played = play(make(tmp_path), HONEST, *MODEL)
    assert played.document["_code"] == 0, played.document["_stderr"]
    assert asked(played.project) == 0


def test_one_that_writes_into_the_tracker_is_refused(tmp_path: Path) -> None:
    writing = {**GOOD, "files": {"TODO/GAL-50.md": other("GAL-50", "Mine", "Todo", "bug")}}
    played = play(make_tracked(tmp_path), [*WORK, writing, writing], *MODEL)
    assert played.document["outcome"] == "completed", played.document["_stderr"]
    assert "@pm did not answer (MALFORMED): filed by rule" in played.artifact("summary.md")
    told = (played.project.run_folder() / "dispatches/011-publish-pm/result.json").read_text(encoding="utf-8")
    assert "Read-only file system: 'TODO/GAL-50.md'" in told
    assert "TODO/GAL-50.md" not in played.project.files_at("work")


def test_one_that_gets_out_ends_the_run(tmp_path: Path) -> None:
    project = make_tracked(tmp_path)
    start = project.git("rev-parse", "work")
    plant = ["sh", "-c", f"unset GIT_DIR; git -C {project.root} config alias.st '!true'"]
    played = play(project, [*WORK, {**GOOD, "run": plant}], *MODEL, extra='sandbox = "none"')
    assert (played.document["outcome"], played.document["reason"]) == ("failed", "escape"), played.document["_stderr"]
    assert played.document["_code"] == 6
    assert project.untouched_since(start)
