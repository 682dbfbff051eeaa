"""Whole runs of recipes whose steps ask readers, with scripted agents: what comes out, what is half, going on anew."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from kit import make_project

from pipeline.app.run_result import RecipeDocument
from pipeline.matrix.engine.protocols import TRUNK
from pipeline.matrix.recipes.check import checked
from pipeline.matrix.recipes.next_steps import RecipeMachine, reopened
from pipeline.matrix.recipes.step_table import StepEvent, StepSignal
from pipeline.matrix.recipes.templates import areas_by_item
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


# --- going on otherwise than it was left: with a step that is done again, or with a changed recipe --------------------

RECIPE = """name: mine
inputs: [{name: tone, default: short}]
steps:
  - {id: look, agent: explore, prompt: "What greets?", payload: {type: array, items: {type: string}}}
  - {id: judge, agent: check, depends_on: [look], prompt: "Is it right?", attempts: 1}
  - {id: tell, agent: explore, depends_on: [judge], prompt: "Tell it, {{inputs.tone}}."}
output: "{{steps.tell.output}}"
"""
CHANGED = RECIPE.replace("Is it right?", "Is it polite?").replace(
    "output:", '  - {id: each, agent: explore, depends_on: [look], for_each: "{{steps.look.payload}}", '
    'prompt: "{{item}}"}\noutput:'
)  # fmt: skip


LOOK, WRONG = answer("look", "greet.", payload=["greet"]), {"when": {"step": "judge"}, "report": {"result": "?"}}


def dispatches(project: Project) -> list[str]:
    names = [line["data"]["dispatch"] for line in project.journal("run-mine") if line["kind"] == "dispatch_started"]
    return [name.split("-")[1] for name in dict.fromkeys(names)]


@pytest.mark.broad
def test_checks_21_and_22_a_recipe_is_pinned_until_the_run_goes_on_with_another(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    mine = tmp_path / "mine.yaml"
    mine.write_text(RECIPE)
    script = [LOOK, WRONG, WRONG]
    project.use_script(script, LOOSE)
    assert project.redfirst("run", "../mine.yaml").returncode == 8
    mine.write_text(CHANGED)
    said = project.document("resume", "mine")
    assert (said["_code"], said["failed"], said["held"]) == (8, ["judge"], ["tell"])
    folder = project.run_folder("run-mine")
    assert "right" in (folder / "steps/judge/request.md").read_text(), "check 21: what was edited does not count"
    refused = project.redfirst("resume", "mine", "--step", "lok")
    assert (refused.returncode, 'Did you mean "look"?' in refused.stderr) == (2, True), refused.stderr
    mine.write_text(CHANGED.replace("id: tell", "id: look"))
    assert project.redfirst("resume", "mine", "--recipe", "../mine.yaml").returncode == 2, "it has to be sound"
    mine.write_text(CHANGED)
    script += [answer("judge", "It is."), answer("tell", "It greets."), answer("each.1", "One.")]
    project.use_script(script, LOOSE)
    said = project.document("resume", "mine", "--recipe", "../mine.yaml")
    assert (said["_code"], said["output"]) == (0, "It greets.\n"), said["_stderr"]
    assert sorted(dispatches(project)) == ["each.1", "judge", "judge", "judge", "look", "tell"], "check 22"
    assert "polite" in (folder / "steps/judge/request.md").read_text()
    kept = json.loads((folder / "recipe.json").read_text())
    assert kept["sha256"] != said["recipe"]["sha256"], "the first one stays on record"
    ended = project.redfirst("resume", "mine", "--step", "look")
    assert (ended.returncode, f"redfirst run {mine} tone=short" in ended.stderr) == (2, True), ended.stderr
    assert "completed (done)" in project.redfirst("show", "mine").stdout, "folding gives the same"
    assert "by another recipe; done again: judge, tell, each" in project.redfirst("show", "mine", "--log").stdout


def test_a_step_is_done_again_with_all_that_saw_it(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    mine = tmp_path / "mine.yaml"
    mine.write_text(RECIPE)
    script = [LOOK, answer("judge", "It is."), {"when": {"step": "tell"}, "report": {"result": "QUESTIONS"}}]
    script[2]["report"]["questions"] = "To whom?"
    project.use_script(script, LOOSE)
    said = project.document("run", "../mine.yaml")
    assert (said["_code"], said["needs_orchestrator"]) == (8, ["tell"])
    assert project.redfirst("resume", "mine", "--onto", "HEAD").returncode == 2
    project.use_script([*script, answer("judge", "It is not."), answer("tell", "It does not greet.")], LOOSE)
    said = project.document("resume", "--step", "judge")
    assert (said["_code"], said["output"]) == (0, "It does not greet.\n"), said["_stderr"]
    assert dispatches(project) == ["look", "judge", "tell", "judge", "tell"]


def test_steps_that_a_changed_recipe_makes_of_a_list_that_is_there_write_side_by_side(tmp_path: Path) -> None:
    """And so do those of a list that is given with the inputs; where two areas meet, one waits."""
    head = "name: mine\ninputs: [{name: some, type: issues, default: A-1 A-2}]\nsteps:\n"
    head += "  - {id: list, agent: explore, prompt: p, payload: {type: array, items: {type: string}}}\n"
    each = '  - {{id: {id}, agent: make, prompt: p, depends_on: [list], for_each: "{over}", write_set: ["{area}"]}}\n'
    of_list = each.format(id="w", over="{{steps.list.payload}}", area="{{item}}.md")
    recipe, problems = checked(head + of_list)
    assert recipe is not None, problems
    machine = RecipeMachine(recipe, {"some": "A-1 A-2"})
    before, _ = checked(head)
    assert before is not None
    first = RecipeMachine(before, {"some": "A-1 A-2"})
    state, _ = first.advance(first.initial(), StepEvent(signal=StepSignal.OK, lane=TRUNK))
    state, _ = first.advance(state, StepEvent(signal=StepSignal.ANSWERED, lane="list"))
    areas = areas_by_item(machine.steps["w"], machine.values, ["a", "b", "a"])
    after = reopened(machine, state, ["w"], {"w": 3}, {"w": areas})
    assert set(after.lanes) - {TRUNK} == {"w.1", "w.2"}
    of_input, problems = checked(head + each.format(id="w", over="{{inputs.some}}", area="docs/{{item}}.md"))
    assert of_input is not None, problems
    begun = RecipeMachine(of_input, {"some": "A-1 A-2"})
    state, _ = begun.advance(begun.initial(), StepEvent(signal=StepSignal.OK, lane=TRUNK))
    state, _ = begun.advance(state, StepEvent(signal=StepSignal.ANSWERED, lane="list"))
    assert set(state.lanes) - {TRUNK} == {"w.1", "w.2"}


@pytest.mark.broad
def test_an_item_that_makes_no_pattern_is_told_before_anything_goes_on(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    mine = tmp_path / "mine.yaml"
    mine.write_text(RECIPE)
    project.use_script([answer("look", "greet.", payload=["../x"]), WRONG], LOOSE)
    assert project.redfirst("run", "../mine.yaml").returncode == 8
    each = 'id: each, agent: make, depends_on: [look], for_each: "{{steps.look.payload}}", write_set: ["{{item}}"]'
    mine.write_text(RECIPE.replace("output:", f"  - {{{each}, prompt: x}}\noutput:"))
    before = project.journal("run-mine")
    refused = project.document("resume", "mine", "--recipe", "../mine.yaml")["error"]
    assert (refused["kind"], "'../x', which each may change" in refused["message"]) == ("input_invalid", True), refused
    assert project.journal("run-mine") == before
