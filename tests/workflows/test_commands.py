"""`redfirst recipes` as a person or a program meets it: where recipes are, and what is said of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest
from kit import make_project
from workflows.test_check import EXAMPLES

from pipeline.matrix.recipes.reading import LARGEST_STEPS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

ASKS = "name: {0}\ndescription: {1}\nsteps: [{{id: a, agent: check, prompt: p}}]\n"


@pytest.mark.broad
def test_check_04_problems_are_told_to_people_and_programs(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(EXAMPLES[1], encoding="utf-8")
    bad.write_text(EXAMPLES[1].replace("agent: check", "agent: chek"), encoding="utf-8")
    project = make_project(tmp_path)
    both = project.redfirst("recipes", "lint", str(good), str(bad))
    assert both.returncode == 2
    assert both.stdout == f"{bad}:5:17: 'chek' is not known as agent; did you mean 'check'? [unknown_role]\n"
    document = json.loads(project.redfirst("recipes", "lint", str(good), str(bad), "--json").stdout)
    assert [file["ok"] for file in document["files"]] == [True, False]
    told = project.redfirst("recipes", "show", str(good), "code=src")
    assert told.returncode == 0
    assert "3. fix: @make, reviewed by @check\n   sees cause\n   may write src\n" in told.stdout
    assert told.stdout.endswith("At most 11 dispatches of 80, 1 approval point. Nobody was asked.\n")
    refused = json.loads(project.redfirst("recipes", "show", str(bad), "--json").stdout)
    assert refused["error"]["kind"] == "recipe_invalid"
    assert refused["error"]["details"]["problems"][0]["rule"] == "unknown_role"
    unknown = json.loads(project.redfirst("recipes", "show", "research", "topci=x", "--json").stdout)
    assert (unknown["error"]["kind"], unknown["error"]["message"].count("did you mean 'topic'?")) == (
        "input_invalid",
        1,
    )
    assert not (project.root / ".workflow").exists()


@pytest.mark.broad
def test_of_one_name_the_repositorys_counts_once_it_is_committed(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    own = project.home / "config" / "redfirst" / "recipes"
    own.mkdir(parents=True)
    (own / "triage.yaml").write_text(ASKS.format("triage", "Mine."), encoding="utf-8")
    (own / "mine.yaml").write_text(ASKS.format("other", "Mine."), encoding="utf-8")
    (own / "broken.yaml").write_bytes(b"name: \xff")
    theirs = {".redfirst/recipes/triage.yaml": ASKS.format("triage", "Theirs.")}
    project.write(theirs)
    assert "Mine." in project.redfirst("recipes", "list").stdout
    missing = project.redfirst("recipes", "show", "trage")
    assert (missing.returncode, 'Did you mean "triage"?' in missing.stderr) == (2, True)
    project.commit()
    listed = json.loads(project.redfirst("recipes", "list", "--json").stdout)["recipes"]
    assert all(one["runs"] for one in listed if one["origin"] == "builtin")
    triage = [(one["origin"], one["path"], one["counts"]) for one in listed if one["name"] == "triage"]
    assert triage == [
        ("repository", ".redfirst/recipes/triage.yaml", True),
        ("user", "~/config/redfirst/recipes/triage.yaml", False),
        ("builtin", "builtin:triage", False),
    ]
    assert {one["name"]: one["ok"] for one in listed if one["origin"] == "user"} == {
        "broken": False, "mine": False, "triage": True,
    }  # fmt: skip
    assert "1. look:" in project.redfirst("recipes", "show", "builtin:triage").stdout
    assert "the recipe is called 'other', and its file 'mine'" in project.redfirst("recipes", "lint", "mine").stdout
    uncommitted = {".redfirst/recipes/late.yaml": ASKS.format("late", "Late.")}
    project.write(uncommitted)
    late = project.redfirst("recipes", "show", "late")
    assert "not committed" in " ".join(late.stderr.split())
    assert project.redfirst("recipes", "show", "./.redfirst/recipes/late.yaml").returncode == 0


def files(*folders: Path) -> dict[str, bytes | None]:
    return {
        str(path): path.read_bytes() if path.is_file() else None
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if "__pycache__" not in path.parts
    }


@pytest.mark.broad
def test_check_02_a_dry_run_asks_nobody_and_writes_nothing(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    theirs = {".redfirst/recipes/mine.yaml": "name: mine\nextends: builtin:quick\n"}
    project.write(theirs)
    project.commit()
    project.use_script([])
    before = files(project.root, project.home)
    told = project.redfirst("run", "GAL-1", "--recipe", "quick", "--dry-run")
    assert told.returncode == 0, told.stderr
    *steps, last = told.stdout.splitlines()
    assert steps == [
        "quick (builtin:quick): issue=GAL-1",
        "1. claim: redfirst claims the issue",
        "2. plan: @orchestrator drafts plan and tasks",
        "3. tasks: for each task @test writes tests and @make makes them pass",
        "4. final: the result, reviewed by @check",
        "5. publish: redfirst puts the commits on the branch",
        "@check, @make, @orchestrator, @test: scripted",
    ]
    assert last.startswith("4 dispatches where the issue is one task and nothing goes wrong; at most 40.")
    assert last.endswith("Publishes on work. Nobody was asked, nothing was written.")
    gated = project.redfirst("run", "GAL-1", "--dry-run", "--approve", "plan", "--json")
    free = project.redfirst("run", "GAL-1", "--dry-run", "--json")
    least = [json.loads(one.stdout)["dispatches"]["least"] for one in (free, gated)]
    assert least == [7, 9], "a person looks at the plan: the split and its review are asked for apart"
    document = json.loads(project.redfirst("run", "fix-failing-tests", "code=src", "--dry-run", "--json").stdout)
    steps = {step["id"]: step for step in document["steps"]}
    assert [step["wave"] for step in steps.values()] == [1, 2, 3, 4, 5]
    assert (steps["fix"]["sees"], steps["fix"]["writes"]) == (["cause"], ["src"])
    assert (document["dispatches"]["most"], document["gates"], document["branch"]) == (11, 1, "work")
    assert (document["runs"], document["inputs"]) == (True, {"tests": "all", "code": "src"})
    asked = ("run", "GAL-1", "--approve", "split,plan", "--agent", "simplify=off", "--dry-run")
    gated = project.redfirst(*asked).stdout
    assert "Waits for you at approval points: plan, split." in gated
    assert "reviewed by @check\n" in gated
    assert "and @simplify" not in gated
    assert "@simplify: off" in gated
    assert json.loads(project.redfirst(*asked, "--json").stdout)["approve"] == ["plan", "split"]
    unseen = json.loads(project.redfirst("run", "mine", "issue=gal-1", "--dry-run", "--json").stdout)
    assert (unseen["runs"], unseen["trusted"]) == (True, False)
    for words in (["research"], ["quick"], ["GAL-1", "x=y"], ["GAL-1", "--recipe", "quik"], ["./none.yaml"]):
        assert project.redfirst("run", *words, "--dry-run").returncode == 2, words
    assert files(project.root, project.home) == before


@pytest.mark.broad
def test_a_dry_run_on_the_base_branch_says_that_a_run_refuses_it(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.use_script([])
    project.git("switch", "-q", "main")
    told = project.redfirst("run", "GAL-1", "--dry-run")
    assert (told.returncode, "Publishes on" in told.stdout) == (0, False)
    assert "It would not begin here. You stand on main, which is the base branch." in told.stdout
    assert json.loads(project.redfirst("run", "GAL-1", "--dry-run", "--json").stdout)["runs"] is False
    assert "It would not begin" not in project.redfirst("run", "GAL-1", "--worktree", "--dry-run").stdout
    project.write({"greet.py": "unfinished\n"})
    lines = project.redfirst("run", "GAL-1", "--dry-run").stdout.splitlines()
    told_apart = [line.split()[5:7] for line in lines if line.startswith("It would not begin here. ")]
    assert told_apart == [["You", "stand"], ["The", "working"]], lines
    project.git("checkout", "--quiet", ".")
    nowhere = project.redfirst("run", "GAL-77", "--worktree", "--dry-run").stdout
    assert "It would not begin here." in nowhere, "as `run` refuses it"
    assert "GAL-77" in nowhere.partition("It would not begin here.")[2]


def test_what_files_issues_writes_to_the_folder_that_is_configured(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.use_script([])
    project.write({"redfirst.toml": '[tracker]\nfolder = "issues"\n'})
    project.git("mv", "TODO", "issues")
    project.commit()
    for words in (("recipes", "show", "triage"), ("run", "triage", "--dry-run")):
        steps = project.document(*words)["steps"]
        assert [step["writes"] for step in steps if step["kind"] == "file_issues"] == [["issues"]], words


def test_a_recipe_is_run_by_its_name_with_the_issue_that_it_asks_for(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.use_script([])
    refused = json.loads(project.redfirst("run", "quick", "issue=GAL-7", "--json").stdout)
    assert refused["error"]["kind"] == "issue_not_found"
    assert "GAL-7" in refused["error"]["message"]
    misspelt = json.loads(project.redfirst("run", "reserch", "topic=x", "--json").stdout)
    assert (misspelt["error"]["kind"], "research" in misspelt["error"]["message"]) == ("recipe_not_found", True)


# --- recipes of a stranger: nothing is run, and what is sound beside them can still be used ---------------------------

BOMB: Final = "name: bomb\na: &a [x, x]\nb: &b [*a, *a]\nsteps: [*b]\n"
MANY: Final = "name: many\nsteps:\n" + "".join(f"  - {{id: s{n}, gate: ask}}\n" for n in range(LARGEST_STEPS + 1))
PHASES: Final = "name: {0}\nextends: builtin:quick\nedits: [{{change: final, set: {{review: []}}}}]\n"
HOSTILE: Final = {
    "bomb": (BOMB, "not_yaml"),
    "many": (MANY, "too_many_steps"),
    "itself": ("name: itself\nextends: itself\n", "include_cycle"),
    "deep": ("name: deep\nsteps: " + "[" * 5_000, "not_yaml"),
    "tag": ("name: tag\nsteps: !!python/object/apply:os.system [id]\n", "not_yaml"),
    "unseen": (PHASES.format("unseen"), "unreviewed_writer"),
    "reader": ("name: reader\nsteps: [{id: a, agent: explore, prompt: p, write_set: [x]}]\n", "reader_writes"),
    "out": ("name: out\nsteps: [{id: a, agent: make, prompt: p, write_set: [../x]}]\n", "bad_pattern"),
    "option": (
        "name: option\ninputs: [{name: x}]\nsteps: [{id: a, run: [git, '{{inputs.x}}']}]\n",
        "looks_like_option",
    ),
    "shown": ('name: shown\nsteps: [{id: a, agent: "\\e[31mchek", prompt: p}]\n', "unknown_role"),
}


def test_check_29_what_is_hostile_is_refused_with_its_reason_and_nothing_is_begun(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.write({f".redfirst/recipes/{name}.yaml": text for name, (text, _) in HOSTILE.items()})
    folder = project.root / ".redfirst" / "recipes"
    (folder / "bytes.yaml").write_bytes(b"name: \xff\n")
    (folder / "link.yaml").symlink_to("/etc/passwd")
    project.commit("gifts")
    project.use_script([])
    before = project.git("rev-parse", "HEAD")
    linted = project.redfirst("recipes", "lint", *HOSTILE, "--json")
    for (name, (_, rule)), file in zip(HOSTILE.items(), json.loads(linted.stdout)["files"], strict=True):
        assert rule in {problem["rule"] for problem in file["problems"]}, name
    for name in ("bomb", "unseen", "shown"):
        refused = json.loads(project.redfirst("run", "GAL-1", "--recipe", name, "--json").stdout)["error"]
        rules = {problem["rule"] for problem in refused["details"]["problems"]}
        assert (refused["kind"], HOSTILE[name][1] in rules) == ("recipe_invalid", True), (name, refused)
        assert "\x1b" not in refused["message"]
    listed = json.loads(project.redfirst("recipes", "list", "--json").stdout)["recipes"]
    theirs = {one["name"]: one["ok"] for one in listed if one["origin"] == "repository"}
    assert theirs == dict.fromkeys([*HOSTILE, "bytes"], False), "a link is no recipe"
    assert "passwd" not in project.redfirst("run", "GAL-1", "--recipe", "link").stdout
    assert project.redfirst("recipes", "show", "builtin:quick").returncode == 0
    assert project.untouched_since(before)
    assert not (project.root / ".workflow").exists()
