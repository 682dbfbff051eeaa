"""Whole runs of recipes whose steps write, with scripted agents: areas, what each step sees, what comes together."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from crashes import KILLED, die_at, problems, repeated_dispatches
from kit import FILES as GREETING
from kit import make_project
from workflows.test_runs_of_recipes import LOOSE, answer

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry, Project

pytestmark = pytest.mark.slow

FILES = {
    "sums.project": "",
    "ant.sum": "ant n = n * 1\n",
    "bee.sum": "bee n = n * 1\n",
    "all.check": "ant0: ant 0 = 0\nbee0: bee 0 = 0\n",
    "docs/a.md": "a\n",
    "docs/b.md": "b\n",
}
DONE: dict[str, Any] = {"result": "COMPLETE", "summary": "Done."}


def made(tmp_path: Path, *steps: dict[str, Any], files: dict[str, str] | None = None, **more: Any) -> Project:
    """Return a project with a recipe `r` of these steps, trusted."""
    recipe = {
        "name": "r",
        "steps": [{**({"prompt": "p"} if "agent" in step else {}), **step} for step in steps],
        **more,
    }
    project = make_project(tmp_path, {**FILES, ".redfirst/recipes/r.yaml": json.dumps(recipe), **(files or {})})
    project.env["TESTS_LANGUAGE"] = "languages.sums"
    assert project.redfirst("trust", "--yes").returncode == 0
    return project


def writes(step: str, files: dict[str, str], **more: Any) -> Entry:
    return {"when": {"step": step}, "files": files, "report": DONE, **more}


def reads(step: str, **sees: str) -> Entry:
    """Return the answer of a reader that fails unless each of these files of `docs` has just this line."""
    tests = " && ".join(f'[ "$(cat docs/{name}.md)" = {line} ]' for name, line in sees.items())
    return {"when": {"step": step}, "run": ["sh", "-c", tests], "report": {"result": "ANSWERED", "output": step}}


def ran(project: Project, *argv: str) -> dict[str, Any]:
    document = project.document(*(argv or ("run", "r")))
    assert not project.git("status", "--porcelain"), "nothing of the user's changed"
    return document


def tree_of(project: Project, step: str) -> str:
    (ref,) = project.git("for-each-ref", "--format=%(refname)", "refs/redfirst/runs").split()
    return project.git("rev-parse", f"{ref}:step-{step}")


def together(project: Project) -> set[frozenset[str]]:
    """Return which steps were at work at the same time, by the journal."""
    at_work: set[str] = set()
    found: set[frozenset[str]] = set()
    for line in project.journal("run-r"):
        if line["kind"] == "dispatch_started":
            at_work.add(line["data"]["lane"])
            found |= {frozenset({one, line["data"]["lane"]}) for one in at_work}
        elif line["kind"] == "step_settled":
            at_work.discard(line["data"]["step"])
    return {pair for pair in found if len(pair) > 1}


def test_checks_13_and_14_a_write_outside_of_the_area_is_refused_and_a_pattern_opens_no_test(tmp_path: Path) -> None:
    """Nor any file that controls tests; the agent is asked again."""
    project = made(tmp_path, {"id": "w", "agent": "make", "write_set": ["**/*.md", "*.check"]})
    wrong = {"docs/a.md": "new\n", "ant.sum": "ant n = n * 2\n", "all.check": "ant0: ant 0 = 1\n"}
    project.use_script([writes("w", wrong), writes("w", {"docs/b.md": "new\n"})], LOOSE)
    document = ran(project)
    assert (document["outcome"], document["dispatches"]) == ("completed", 2), document
    first = json.loads((project.run_folder("run-r") / "dispatches/001-w-make/result.json").read_text())
    assert {(one["path"], one["rule"]) for one in first["violations"]} == {
        ("ant.sum", "outside-area"),
        ("all.check", "test-file"),
    }
    changed = project.git("diff", "--name-only", "HEAD", tree_of(project, "w"))
    assert changed.split() == ["docs/a.md", "docs/b.md"], "what was its to change is kept, and gone on with"
    assert "`docs/a.md`" in (project.run_folder("run-r") / "steps/w/w.md").read_text()


@pytest.mark.broad
def test_check_12_a_reader_beside_a_writer_sees_the_start_and_one_behind_it_what_it_wrote(tmp_path: Path) -> None:
    """And acceptance check 10: writers whose areas meet never overlap; others do, and their work comes together."""
    make = {"agent": "make"}
    project = made(
        tmp_path,
        {"id": "one", **make, "write_set": ["docs/a.md"]},
        {"id": "two", **make, "write_set": ["docs/b.md", "docs/new"]},
        {"id": "beside", "agent": "check"},
        {"id": "behind", "agent": "check", "depends_on": ["one"]},
        {"id": "meets", **make, "write_set": ["docs"]},
        {"id": "last", "agent": "check", "depends_on": ["meets"]},
        max_concurrency=9,
    )
    script = [
        writes("one", {"docs/a.md": "one\n"}),
        writes("two", {"docs/b.md": "two\n", "docs/new/c.md": "two\n"}),
        reads("beside", a="a", b="b"),
        reads("behind", a="one", b="b"),
        {**reads("meets", a="one", b="two"), "files": {"docs/new/d.md": "meets\n"}, "report": DONE},
        reads("last", a="one", b="two"),
    ]
    project.use_script(script, LOOSE)
    document = ran(project)
    assert (document["outcome"], document["dispatches"]) == ("completed", 6), document
    pairs = together(project)
    assert frozenset({"one", "two"}) in pairs
    assert not {frozenset({"one", "meets"}), frozenset({"two", "meets"})} & pairs
    changed = project.git("diff", "--name-only", "HEAD", tree_of(project, "meets"))
    assert changed.split() == ["docs/a.md", "docs/b.md", "docs/new/c.md", "docs/new/d.md"]


def review(step: str, verdict: str, role: str = "check", **more: Any) -> Entry:
    return {"when": {"step": step, "kind": "review-step", "role": role}, "report": {"verdict": verdict, **more}}


def asks(step: str) -> dict[str, Any]:
    return {"step": step, "kind": "change"}


def given(project: Project, dispatch: str) -> set[str]:
    folder = project.run_folder("run-r") / "dispatches" / dispatch / "artifacts"
    return {path.name for path in folder.iterdir()}


@pytest.mark.broad
def test_what_was_written_is_measured_and_reviewed_and_asked_again_with_what_failed(tmp_path: Path) -> None:
    held = {"accept": {"regression": True}, "review": ["check", "simplify"]}
    project = made(
        tmp_path,
        {"id": "w", "agent": "make", "write_set": ["*.sum"], **held},
        {"id": "behind", "agent": "check", "depends_on": ["w"]},
    )
    finding = {"severity": "HIGH", "title": "Too little", "problem": "3 was meant", "evidence": "ant.sum:1"}
    advice = review("w", "JUSTIFIED COMPLEXITY", "simplify")
    project.use_script(
        [
            writes("w", {"ant.sum": "ant n = n + 1\n"}, when=asks("w")),
            writes("w", {"ant.sum": "ant n = n * 2\n"}, when=asks("w")),
            review("w", "NEEDS WORK", findings=[finding]),
            advice,
            writes("w", {"ant.sum": "ant n = n * 3\n"}, when=asks("w")),
            review("w", "ACCEPTABLE", prior=[{"id": "step-1-01", "status": "resolved"}]),
            advice,
            {**reads("behind"), "run": ["grep", "3", "ant.sum"]},
        ],
        LOOSE,
    )
    document = ran(project)
    assert (document["outcome"], document["dispatches"]) == ("completed", 8), document
    assert given(project, "002-w-make") == {"request", "measured"}
    assert given(project, "005-w-make") == {"request", "measured", "findings"}
    assert given(project, "006-w-check") == {"request", "measured", "diff", "open_findings", "changes"}
    assert given(project, "007-w-simplify") == {"request", "diff", "changes"}
    told = (project.run_folder("run-r") / "dispatches/002-w-make/artifacts/measured/measured.md").read_text()
    assert "passed before: `all.check::ant0` fails: ant 0 is 1, not 0" in told
    assert "w: MET -> review\n" in document["_stderr"]
    rows = project.rows("run-r")
    assert rows[1:-1] == [
        "ask/ANSWERED",
        "accept/NOT_MET",
        "ask/ANSWERED",
        "accept/MET",
        "review/NEEDS_WORK",
        "ask/ANSWERED",
        "accept/MET",
        "review/ACCEPTABLE",
    ]


def test_a_scratch_copy_is_seen_by_nobody_until_its_patch_is_applied_all_or_nothing(tmp_path: Path) -> None:
    scratch = {"agent": "make", "workspace_mode": "scratch"}
    project = made(
        tmp_path,
        {"id": "try1", **scratch},
        {"id": "try2", **scratch},
        {"id": "beside", "agent": "check", "depends_on": ["try1"]},
        {"id": "other", "agent": "make", "write_set": ["docs/b.md"], "depends_on": ["try1"]},
        {"id": "take", "apply_from": "try1", "depends_on": ["try1"], "accept": {"regression": True}},
        {"id": "behind", "agent": "check", "depends_on": ["take"]},
        {"id": "late", "apply_from": "try2", "depends_on": ["try2", "behind"]},
    )
    project.use_script(
        [
            writes("try1", {"docs/a.md": "one\n", "ant.sum": "ant n = n * 2\n"}),
            writes("try2", {"docs/a.md": "one\n", "docs/b.md": "two\n", "docs/c.md": "two\n"}),
            reads("beside", a="a", b="b"),
            {**reads("other", a="a", b="b"), "files": {"docs/c.md": "other\n"}, "report": DONE},
            writes("other", {"docs/b.md": "other\n"}),
            reads("behind", a="one", b="other"),
        ],
        LOOSE,
    )
    document = ran(project)
    assert (document["outcome"], document["failed"]) == ("partial", ["late"]), document
    told = (project.run_folder("run-r") / "steps/late/late.md").read_text()
    assert "Nothing was applied" in told
    assert "`docs/b.md`" in told
    assert "`docs/a.md`" not in told, "it is as the other one left it"
    changed = project.git("diff", "--name-only", "HEAD", tree_of(project, "take"))
    assert changed.split() == ["ant.sum", "docs/a.md", "docs/b.md"]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.broad
def test_check_08_killed_anywhere_comes_to_the_same_trees_and_asks_nothing_twice(seed: int, tmp_path: Path) -> None:
    """And acceptance check 7: delays, and which of two steps ends first, change nothing of what is written."""
    rng = random.Random(seed)  # noqa: S311  (a schedule, no secret)
    project = made(
        tmp_path,
        {"id": "one", "agent": "make", "write_set": ["docs/a.md", "*.sum"], "accept": {"regression": True}},
        {"id": "two", "agent": "make", "write_set": ["docs/b.md"], "review": ["check"]},
        {"id": "both", "agent": "make", "write_set": ["docs"]},
        {"id": "last", "agent": "check", "depends_on": ["both"]},
    )
    bad = {"docs/a.md": "one\n", "ant.sum": "ant n = n + 1\n"}
    script = [
        writes("one", bad, sleep_s=rng.random() / 2),
        writes("one", {"ant.sum": "ant n = n * 2\n"}, sleep_s=rng.random() / 2),
        writes("two", {"docs/b.md": "two\n"}, when=asks("two"), sleep_s=rng.random() / 2),
        review("two", "ACCEPTABLE"),
        {**reads("both", a="one", b="two"), "files": {"docs/c.md": "both\n"}, "report": DONE},
        reads("last", a="one", b="two"),
    ]
    project.use_script(script, LOOSE)
    kills, argv = 0, ("run", "r")
    instants = ("after journal (dispatch_finished|decision)", "(after|before) (journal|replace|git)")
    while die_at(project, instants[kills % 2], rng.randint(1, 6 if kills % 2 == 0 else 60), *argv) == KILLED:
        kills, argv = kills + 1, ("resume", "run-r")
        assert kills < 40, "the run makes no progress"
    assert kills >= 1
    assert "completed (done)" in project.redfirst("show", "run-r").stdout
    assert (repeated_dispatches(project, "run-r"), problems(project)) == ([], [])
    assert sum(line["kind"] == "dispatch_finished" for line in project.journal("run-r")) == len(script)
    assert "any/ESCAPE" not in project.rows("run-r")
    wanted = {"ant.sum": "ant n = n * 2", "docs/a.md": "one", "docs/b.md": "two", "docs/c.md": "both"}
    tree = tree_of(project, "both")
    assert {path: project.git("show", f"{tree}:{path}") for path in wanted} == wanted
    assert set(project.git("diff", "--name-only", "HEAD", tree).split()) == set(wanted)


@pytest.mark.broad
def test_a_list_parts_its_writers_by_their_items(tmp_path: Path) -> None:
    form = {"type": "array", "items": {"type": "string"}}
    listed = {"id": "list", "agent": "explore", "payload": form, "review": ["check"]}
    each = {"for_each": "{{steps.list.payload}}", "write_set": ["{{item}}"], "depends_on": ["list"]}
    project = made(
        tmp_path,
        listed,
        {"id": "w", "agent": "make", **each},
        {"id": "behind", "agent": "check", "depends_on": ["w"]},
    )

    def names(*items: str) -> Entry:
        return {"when": {"step": "list"}, "report": {"result": "ANSWERED", "output": "o", "payload": items}}

    project.use_script(
        [
            names("../x"),
            names("docs/a.md", "docs/b.md", "docs/a.md"),
            review("list", "ACCEPTABLE"),
            writes("w.1", {"docs/a.md": "one\n"}),
            writes("w.2", {"docs/b.md": "two\n"}),
            {**reads("w.3", b="b"), "files": {"docs/a.md": "three\n"}, "report": DONE},
            reads("behind", a="three", b="two"),
        ],
        LOOSE,
    )
    document = ran(project)
    assert (document["outcome"], document["dispatches"]) == ("completed", 7), document
    assert given(project, "003-list-check") == {"request", "answer"}
    pairs = together(project)
    assert frozenset({"w.1", "w.2"}) in pairs
    assert frozenset({"w.1", "w.3"}) not in pairs
    first = json.loads((project.run_folder("run-r") / "dispatches/001-list-explore/result.json").read_text())
    assert "a pattern has no empty part, `.` or `..`" in first["complaint"]


@pytest.mark.broad
def test_a_file_and_a_folder_of_one_name_need_a_person(tmp_path: Path) -> None:
    project = made(
        tmp_path,
        {"id": "file", "agent": "make", "write_set": ["?"]},
        {"id": "folder", "agent": "make", "write_set": ["x/y"]},
        {"id": "behind", "agent": "check", "depends_on": ["file", "folder"]},
    )
    project.use_script([writes("file", {"x": "one\n"}), writes("folder", {"x/y": "two\n"})], LOOSE)
    document = ran(project)
    assert document["needs_orchestrator"] == ["behind"], document
    told = json.loads((project.run_folder("run-r") / "steps/behind/outcome.json").read_text())["error"]
    assert (told["kind"], "x/y of another one" in told["message"]) == ("collision", True)


# --- proofs: of a finding on what a step wrote, and of one on the change that a run is about --------------------------


def test_a_finding_on_what_a_step_wrote_is_proved_and_settled_by_measuring(tmp_path: Path) -> None:
    project = made(tmp_path, {"id": "w", "agent": "make", "write_set": ["*.sum"], "review": ["check"]})

    def found(title: str, test: str) -> dict[str, Any]:
        proof = {"test": {"path": f"{title}.check", "content": test}}
        return {"severity": "LOW", "title": title, "problem": f"{title}.", "proof": proof}

    project.use_script(
        [
            writes("w", {"ant.sum": "ant n = n * 2\n"}, when=asks("w")),
            review("w", "NEEDS WORK", findings=[found("thrice", "t: ant 2 = 6\n"), found("twice", "t: ant 2 = 4\n")]),
            writes("w", {"ant.sum": "ant n = n * 3\n"}, when=asks("w")),
            review("w", "ACCEPTABLE"),
        ],
        LOOSE,
    )
    document = ran(project)
    assert (document["outcome"], document["dispatches"]) == ("completed", 4), document
    folder = project.run_folder("run-r")
    records = [
        json.loads(path.read_text())["ledger"]["findings"] for path in sorted(folder.glob("steps/w/review-*.json"))
    ]
    assert [[(one["severity"], one["measured"]["found"], one["status"]) for one in each] for each in records] == [
        [("HIGH", "proved", "open"), ("LOW", "refuted", "refuted")],
        [("HIGH", "proved", "resolved"), ("LOW", "refuted", "refuted")],
    ]
    assert given(project, "004-w-check") >= {"open_findings", "changes"}
    told = (folder / "dispatches/004-w-check/artifacts/open_findings/open.md").read_text()
    assert told.startswith("# Refuted"), "what was mended is settled: nothing is left to answer"


GREETS_NOBODY = GREETING["greet.py"].replace('f"Hello, {name}!"', 'f"Hello, {name or 1 / len(name)}!"')
TEST = "from greet import greet\n\n\ndef test_x():\n    assert greet({name!r}) == 'Hello, {name}!'\n"


@pytest.mark.broad
def test_what_is_found_in_a_change_is_filed_as_proved_and_not_where_it_is_refuted(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.git("switch", "--quiet", "--create", "feature", "main")
    project.write({"greet.py": GREETS_NOBODY})
    project.commit("feat: nobody")
    project.git("switch", "--quiet", "work")

    def found(claim: str, name: str, path: str = "tests/test_x.py") -> dict[str, Any]:
        return {"claim": claim, "proof": {"test": {"path": path, "content": TEST.format(name=name)}}}

    wrong = [found("Nobody cannot be greeted", ""), found("Ada is not greeted", "Ada"), found("Odd", "", "x.py")]
    claims = {"findings": [{**wrong[0], "measured": {"found": "proved", "why": "I say so"}}]}
    project.use_script(
        [
            answer("check", "One.", payload=claims),
            answer("check", "Three.", payload={"findings": wrong}),
            answer("simplify", "None.", payload={"findings": []}),
        ],
        LOOSE,
    )
    document = project.document("run", "review", "of=feature")
    assert (document["outcome"], document["_code"]) == ("completed", 0), document
    folder = project.run_folder("run-review")
    payload = json.loads((folder / "steps/check/check.json").read_text())["findings"]
    assert [one["measured"]["found"] for one in payload] == ["proved", "refuted", "unproved"]
    assert [one.get("severity") for one in payload] == ["HIGH", None, None]
    assert (
        "proved: Nobody cannot be greeted: it fails over the result, twice"
        in (folder / "steps/check/check.md").read_text()
    )
    filed = {path.name: path.read_text() for path in (project.root / "TODO").glob("GAL-*.md")}
    assert sorted(filed) == ["GAL-1.md", "GAL-2.md", "GAL-3.md"], "what is refuted is no issue"
    assert "Proved: it fails over the result" in filed["GAL-2.md"]
    assert "def test_x():" in filed["GAL-2.md"]
    assert "`measured` is for redfirst to say" in document["_stderr"] or document["dispatches"] == 3
