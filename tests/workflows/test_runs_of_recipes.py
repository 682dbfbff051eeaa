"""Whole runs of recipes whose steps ask readers, with scripted agents: what comes out, what is half, going on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from kit import make_project

from pipeline.app.run_result import RecipeDocument
from pipeline.steps.recipe_outcome import StepOutcome

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry, Project

pytestmark = pytest.mark.slow

QUOTED = {"findings": [{"claim": "greet formats", "path": "greet.py", "quote": 'return f"Hello, {name}!"'}]}
LIED = {"findings": [{"claim": "greet logs", "path": "greet.py", "quote": "logging.info", "confidence": "certain"}]}


def answer(step: str, output: str, **more: Any) -> Entry:
    return {"when": {"step": step}, "report": {"result": "ANSWERED", "output": output, **more}}


ANGLES = answer("angles", "Two.", payload=["callers", "checks"])
DOUBT = answer("doubt", "None.")
BRIEF = answer("brief", "# Brief\n\nNames are not checked.")
RESEARCH = [ANGLES, answer("look.1", "One.", payload=QUOTED), answer("look.2", "Two.", payload=LIED), DOUBT, BRIEF]
LOOSE = 'sandbox = "none"\n'


def research(project: Project, *argv: str) -> dict[str, Any]:
    done = project.redfirst("run", "research", "topic=$(touch x) {{item}}", "--json", *argv)
    assert done.stdout, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    for step in RecipeDocument.model_validate_json(done.stdout).steps:
        outcome = StepOutcome.model_validate(outcome_of(project, step.step))
        assert (outcome.step, outcome.checkpoint, outcome.wave) == (step.step, step.checkpoint, step.wave)
    return {**document, "_code": done.returncode}


def outcome_of(project: Project, step: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        (project.root / ".workflow/run-research/steps" / step / "outcome.json").read_text()
    )
    return found


def test_a_question_becomes_a_brief(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.use_script(RESEARCH, LOOSE)
    document = research(project)
    assert (document["outcome"], document["_code"]) == ("completed", 0)
    assert document["output"] == "# Brief\n\nNames are not checked.\n"
    folder = project.root / ".workflow/run-research"
    request = (folder / "steps/look.1/request.md").read_text()
    assert "$(touch x) {{item}}, from this angle only: callers" in request, "a value is text, and is not read again"
    assert not project.git("status", "--porcelain"), "nothing of the user's changed"
    lied = json.loads((folder / "steps/look.2/look.2.json").read_text())
    assert lied["findings"][0]["confidence"] == "uncertain", "the quote is not in the file"
    one, two = outcome_of(project, "look.1"), outcome_of(project, "look.2")
    assert (one["wave"], one["dispatches"], one["held_by"]) == (2, ["002-look.1-explore"], [])
    assert one["bundle"]["payloads"][0]["schema"] == "findings.v1"
    assert one["bundle"]["verification"][0]["digest"] == one["bundle"]["artifacts"][1]["sha256"]
    assert (one["bundle"]["limitations"], len(two["bundle"]["limitations"])) == ([], 1), "a quote that is not there"
    assert document["waves"] == [["angles"], ["look.1", "look.2"], ["doubt"], ["brief"]]
    assert 0 < one["seconds"] <= document["seconds"]
    shown = project.redfirst("show", "run-research")
    assert "completed (done): 5 ready" in shown.stdout, shown.stderr
    assert "run-research" in project.redfirst("runs").stdout
    assert "step look.2: ready" in project.redfirst("show", "--log", "run-research").stdout


@pytest.mark.broad
def test_check_15_a_researcher_that_fails_leaves_a_brief_and_is_asked_alone_on_resume(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    wrong = {"when": {"step": "look.2"}, "report": {"result": "ANSWERED"}}
    script = [ANGLES, answer("look.1", "One.", payload=QUOTED), wrong, wrong, DOUBT, BRIEF]
    project.use_script(script, LOOSE)
    document = research(project)
    assert (document["outcome"], document["exit_code"], document["_code"]) == ("partial", 8, 8)
    assert document["failed"] == ["look.2"]
    assert document["output"].startswith("# Brief")
    assert outcome_of(project, "look.2")["error"]["kind"] == "malformed"
    (caches,) = project.home.glob("state/redfirst/runs/*/*/caches")
    assert list(caches.iterdir()) == [], "what agents' tools kept goes with the step"
    handed = project.root / ".workflow/run-research/dispatches/006-brief-explore/artifacts"
    given = sorted(path.name for path in handed.rglob("*"))
    assert ("outcome.json" in given, "look.2.md" in given) == (True, False), "who goes on is told what is missing"
    project.use_script([*script, answer("look.2", "Two.", payload=QUOTED)], LOOSE)
    done = project.redfirst("resume", "--json")
    assert "run-research: the only run here that can go on" in done.stderr
    again = json.loads(done.stdout)
    assert (again["outcome"], done.returncode, again["dispatches"]) == ("completed", 0, 7)


@pytest.mark.broad
def test_checks_16_and_17_a_payload_of_another_form_needs_a_person_and_holds_who_depends_on_it(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    bad = answer("angles", "Two.", payload={"angles": 2})
    project.use_script([bad, bad], LOOSE)
    document = research(project)
    assert document["needs_orchestrator"] == ["angles"]
    assert document["held"] == ["look", "doubt", "brief"]
    assert outcome_of(project, "look")["held_by"] == ["angles"]
    told_why = project.redfirst("explain", "research").stdout
    assert "brief: held: angles is needs orchestrator (PAYLOAD_INVALID" in told_why, told_why
    assert "rule ask/PAYLOAD_INVALID" in project.redfirst("explain", "research", "-v").stdout
    shown = project.redfirst("show", "research").stdout
    assert "brief: held: angles is needs orchestrator (PAYLOAD_INVALID: at /: accepted: array" in shown
    told = outcome_of(project, "angles")["error"]
    assert told["kind"] == "payload_invalid"
    assert "accepted: array" in told["message"]


def test_what_cannot_be_run_yet_is_refused_before_anything(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.use_script([], LOOSE)
    for words, why in (
        (
            [
                "research",
                "topic=x",
                *("--set", "agents.explore.network=model", "--set", "agents.explore.provider=ollama"),
            ],
            '@explore has network = "model", which the box none',
        ),
        (["research"], "the input 'topic' is required"),
        (["research", "topic=x", "angle=y"], "there is no input 'angle'"),
    ):
        done = project.redfirst("run", *words)
        assert (done.returncode, why in done.stderr) == (2, True), done.stderr
    assert not (project.root / ".workflow").exists()


@pytest.mark.broad
def test_a_run_is_given_up(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    bad = answer("angles", "Two.", payload={"angles": 2})
    project.use_script([bad] * 4, LOOSE)
    assert research(project)["_code"] == 8
    elsewhere = tmp_path / "elsewhere"
    project.git("worktree", "add", "--quiet", str(elsewhere))
    assert project.redfirst("resume", "research", cwd=elsewhere).returncode == 8, "any worktree can name it"
    refused = project.redfirst("abandon", cwd=elsewhere)
    assert (refused.returncode, f"run-research in {project.root}" in refused.stderr) == (2, True), refused.stderr
    assert "cancelled (abandoned)" in project.redfirst("abandon", "run-research", cwd=elsewhere).stdout
    assert project.redfirst("resume", "run-research").returncode == 2


SEAMS = """name: site
steps:
  - {id: api, agent: explore, prompt: "What does greet promise?", provides: [greeting]}
  - {id: page, agent: check, depends_on: [api], accepts: partial, requires: [greeting], prompt: "What calls it?"}
"""


@pytest.mark.broad
def test_check_18_an_open_contract_holds_who_requires_it_and_is_told(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    (tmp_path / "site.yaml").write_text(SEAMS)
    broken = [{"name": "greeting", "honoured": False, "note": "empty names pass"}]
    kept = [{"name": "greeting", "honoured": True}]
    silent, script = answer("api", "It says hello."), [answer("api", "It says hello.", seams=broken)]
    project.use_script([silent, *script], LOOSE)
    document = project.document("run", "../site.yaml")
    assert (document["_code"], document["partial"], document["held"]) == (8, ["api"], ["page"]), document["_stderr"]
    (seam,) = document["seam_obligations"]
    assert seam == {"name": "greeting", "provider": "api", "consumers": ["page"], "open": ["api", "page"]}
    steps = project.run_folder("run-site") / "steps"
    assert "`greeting`: this step provides it." in (steps / "api/request.md").read_text()
    assert "`seams` says nothing of greeting" in document["_stderr"] + json.dumps(project.journal("run-site"))
    bundle = json.loads((steps / "api/outcome.json").read_text())["bundle"]
    assert (bundle["dependent_safe"], bundle["seams"]) == (False, [{"name": "greeting", "state": "not_honoured"}])
    assert bundle["limitations"] == ["greeting: empty names pass"]
    shown = project.redfirst("show", "site").stdout
    assert "page: held: api is partial (it does not say that it keeps to greeting)" in shown
    assert "contract greeting: api provides it, page relies on it, not kept to by api, page" in shown
    again = [answer("api", "It refuses empty names.", seams=kept), answer("page", "The page.", seams=kept)]
    project.use_script([silent, *script, *again], LOOSE)
    document = project.document("resume", "site")
    assert (document["_code"], document["seam_obligations"]) == (0, []), document["_stderr"]
