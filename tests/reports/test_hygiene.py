from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.judge.reports.artifacts import plan_md
from pipeline.judge.reports.decode import Malformed
from pipeline.judge.reports.drafts import PlanReport, SplitReport
from pipeline.judge.reports.fields import Action, FileChange
from pipeline.judge.reports.hygiene import lint_plan, lint_split, lint_task
from pipeline.judge.reports.parse import parse_report
from pipeline.judge.reports.problems import RULES, Problem, Weight, drafted
from pipeline.judge.reports.taskfile import task_md
from pipeline.judge.reports.tasks import Task, tasks_from_split
from pipeline.testing.languages import names
from pipeline.vocabulary import Role, Signal

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = {"src/g.py", "tests/test_g.py", "pyproject.toml"}


def plan_problems(text: str) -> list[tuple[str, int]]:
    return [(problem.rule, problem.line) for problem in lint_plan(text, files=(), existing=HERE)]


def rules(text: str) -> set[str]:
    return {rule for rule, _ in plan_problems(text)}


def fence(*lines: str, language: str = "python") -> str:
    return "\n".join([f"```{language}", *lines, "```", ""])


def tasks_of(*tasks: dict[str, Any]) -> tuple[Task, ...]:
    least = {
        "title": "t",
        "acceptance_criteria": ['`greet("")` raises ValueError'],
        "files": [{"path": "src/g.py", "action": "modify"}],
        "test_files": [{"path": "tests/test_g.py", "action": "modify"}],
    }
    report = parse_report("split", Role.ORCHESTRATOR, None, {"tasks": [{**least, **task} for task in tasks]})
    assert isinstance(report, SplitReport), report
    found = tasks_from_split(report, map(str, count(1)))
    assert not isinstance(found, Malformed), found
    return found


def lint(task: Task, test_path: Callable[[str], bool] = names.is_plausible) -> tuple[Problem, ...]:
    return lint_task(task_md(task), task, existing=HERE, names=names, test_path=test_path)


def task_problems(**task: Any) -> list[Problem]:
    (only,) = tasks_of(task)
    return list(lint(only))


def task_rules(**task: Any) -> set[str]:
    return {problem.rule for problem in task_problems(**task)}


def test_an_honest_plan_and_an_honest_task_are_clean() -> None:
    report = parse_report(
        "plan",
        Role.ORCHESTRATOR,
        None,
        {
            "problem": "`greet` accepts an empty name.",
            "approach": "Raise ValueError before formatting. Callers await the result; wait, then retry stays.",
            "files": [{"path": "src/g.py", "action": "modify"}, {"path": "src/new.py", "action": "create"}],
            "risks": ["Do callers rely on it?"],
            "test_design": {"behaviours": [{"action": 'greet("")', "outcome": "ValueError is raised"}]},
        },
    )
    assert isinstance(report, PlanReport)
    text = plan_md(report, "GAL-39", "Wait, why are empty names allowed??? TODO", 1)
    assert lint_plan(text, files=report.files, existing=HERE) == ()
    snippet = {"path": "src/g.py", "snippet": 'def greet(name):\n    return f"hello {name}"'}
    assert task_problems(description="Reject empty names.", code_context=[snippet]) == []


@pytest.mark.parametrize(
    "line",
    [
        "Use a dict. Actually, a list is better.",
        "Actually let me use a list.",
        "- Wait, this breaks callers.",
        "Wait... the cache is shared.",
        "No, wait, that is wrong.",
        "Hm — wait, two of them.",
        "Let me reconsider the cache.",
        "On second thought, keep it.",
        "Scratch that.",
        "Hmm, not sure.",
        "TODO: describe the cache",
        "- TODO",
        "The limit (TODO) is a number.",
        "FIXME(me) later",
        "The limit is TBD.",
        "The limit is ???",
    ],
)
def test_unfinished_text_is_found(line: str) -> None:
    assert plan_problems(f"# P\n\n## Approach\n\n{line}\n") == [("H001", 5)]


@pytest.mark.parametrize(
    "line",
    [
        "Callers await, and the loop goes on.",
        "Wait, then retry once.",
        "The caller must not wait, because the lock is held.",
        "There is no wait, since it is local.",
        "What the user actually, in practice, sees.",
        "Rename `actually, wait` to `b`.",
        'The label "Actually, no" is replaced.',
        "See https://example.org/wait,actually/TODO:x for the reason.",
        "TODO/README.md lists the issues, TODO.md did before.",
        "The todo!() stubs panic.",
        "Remove the `# TODO: speed` comment.",
        "The TODO folder is read by the tracker.",
        "Call client.wait! in Ruby.",
        "await...",
    ],
)
def test_natural_words_are_not_taken_for_unfinished_text(line: str) -> None:
    assert plan_problems(f"# P\n\n## Approach\n\n{line}\n") == []


def test_words_inside_a_code_block_are_cited_not_said() -> None:
    assert rules(fence("# TODO: old comment", "wait...  # actually, yes", "x = '???'")) == set()


def test_a_block_that_is_never_closed_is_unfinished() -> None:
    assert rules("```python\nx = 1\n") == {"H001"}


def test_a_code_block_is_five_lines_at_most() -> None:
    five = ["a = 1", "", "b = 2", "c = 3", "d = 4", "e = 5"]
    assert rules(fence(*five)) == set()
    assert plan_problems("## Approach\n\n" + fence(*five, "f = 6")) == [("H002", 3)]
    assert rules(fence(*["a --> b"] * 9, language="mermaid")) == set()


BODY_PY = ["def greet(name):", "    if not name:", "        raise ValueError", "    return name"]
BODY_RS = ["pub fn greet(name: &str) -> String {", "    let x = name.trim();", "    log(x);", "    x.into()", "}"]
BODY_JS = ["export function greet(name) {", "  const x = name.trim();", "  log(x);", "  return x;", "}"]


@pytest.mark.parametrize("body", [BODY_PY, BODY_RS, BODY_JS, ["x = 1", *("    " + line for line in BODY_PY)]])
def test_a_finished_body_is_found_fenced_or_not(body: list[str]) -> None:
    assert rules("\n".join(body)) == {"H003"}
    assert rules(fence(*body)) == {"H003"}


@pytest.mark.parametrize(
    "code",
    [
        ["def greet(name):", '    """Say hello."""', "    # a", "    # b", "    raise NotImplementedError"],
        ["def greet(name):", "    return name", "", "x = 1"],
        ["fn greet(name: &str) -> String {", "    todo!()", "}"],
        ["def a(x): ...", "def b(x): ...", "def c(x): ..."],
        ["class A:", "    x: int", "    y: int", "    z: int"],
    ],
)
def test_a_signature_or_a_stub_is_no_body(code: list[str]) -> None:
    assert rules(fence(*code)) == set()


@pytest.mark.parametrize(
    "command",
    [
        'bash -c "cargo test"',
        "sh -c 'x'",
        "/bin/sh -ec x",
        "env A=1 zsh -l -c x",
        'nix develop -c bash -c "cargo test"',
        "nix develop .#dev --command bash",
        "cd src && pytest",
        'cd "my dir"; pytest',
        'uv run sh -c "cd x && y"',
    ],
)
def test_a_hidden_shell_is_found_in_prose_in_code_and_at_any_depth(command: str) -> None:
    assert plan_problems(f"Run {command} first.") == [("H004", 1)]
    assert plan_problems(f"Run `{command}` first.") == [("H004", 1)]
    assert plan_problems(fence(command, language="sh")) == [("H004", 2)]


@pytest.mark.parametrize(
    "line",
    [
        "Never use `bash -c` here.",
        "Replace `sh -c` by an argument list.",
        "Run `pytest -c pytest.ini`.",
        "Use git push -c x, or refresh -c, or publish.sh --check.",
        "Run `nix develop -c cargo test`.",
        "Run `abcd x && e` and insert the CD && more.",
        'argv is `["sh", "-c", "x"]`',
        "The `wish -c` and `fish-c` tools.",
    ],
)
def test_an_honest_command_is_no_hidden_shell(line: str) -> None:
    assert rules(line) == set()


def test_an_oversized_snippet_is_found_in_the_code_context_only() -> None:
    long = "\n".join(f"x{n} = {n}" for n in range(6))
    assert task_rules(code_context=[{"path": "src/g.py", "snippet": long}]) == {"H005"}
    assert task_rules(description=fence(*long.split("\n"))) == {"H002"}


def test_the_same_block_twice_and_two_versions_of_it_are_found() -> None:
    one = fence("def greet(name):", "    return name")
    assert [rule for rule, _ in plan_problems(f"Use this:\n\n{one}\nor\n\n{one}")] == ["H006"]
    other = fence("def greet(name):", "    return name.strip()")
    assert [rule for rule, _ in plan_problems(f"Use this:\n\n{one}\nUse this:\n\n{other}")] == ["H006"]


def test_a_section_that_stands_twice_is_found() -> None:
    assert plan_problems("## Approach\n\na\n\n## Approach\n\nb\n") == [("H006", 5)]


@pytest.mark.parametrize(
    ("path", "action", "fits"),
    [
        ("src/g.py", "modify", True),
        ("src/g.py", "delete", True),
        ("src/g.py", "create", False),
        ("src/x.py", "create", True),
        ("src/x.py", "modify", False),
        ("src/x.py", "delete", False),
    ],
)
def test_a_file_exists_when_its_action_says_so(path: str, action: str, fits: bool) -> None:
    files = [FileChange(path=path, action=Action(action))]
    text = f"# P\n\n## Files\n\n- `other/{path}`\n- `{path}` ({action})\n"
    found = [(problem.rule, problem.line) for problem in lint_plan(text, files=files, existing=HERE)]
    assert found == ([] if fits else [("H007", 6)])


@pytest.mark.parametrize(
    ("origin", "path", "fits"),
    [("src/g.py", "b.py", True), ("a.py", "b.py", False), ("src/g.py", "tests/test_g.py", False)],
)
def test_a_rename_needs_a_source_and_a_free_target(origin: str, path: str, fits: bool) -> None:
    files = [FileChange.model_validate({"path": path, "action": Action.RENAME, "from": origin})]
    assert (not lint_plan("", files=files, existing=HERE)) is fits


def test_a_snippet_of_a_file_that_is_not_there_is_found() -> None:
    assert task_rules(code_context=[{"path": "src/gone.py", "snippet": "x"}]) == {"H007"}


def test_a_file_that_one_path_alone_ends_in_is_named_instead_of_advising_a_new_one() -> None:
    def said(path: str, existing: set[str]) -> str:
        files = [FileChange(path=path, action=Action.MODIFY)]
        return next(found.message for found in lint_plan("", files=files, existing=existing) if found.rule == "H007")

    assert said("test_g.py", {"tests/test_g.py", "src/g.py"}) == (
        "test_g.py does not exist; write the whole path: tests/test_g.py"
    )
    assert said("test_g.py", {"a/test_g.py", "b/test_g.py"}).endswith("accepted for a new file is the action create")
    assert said("g.py", {"tests/test_g.py"}).endswith("accepted for a new file is the action create")


@pytest.mark.parametrize(
    ("path", "action", "found"),
    [
        ("tests/test_new.py", "create", set[str]()),
        ("tests/test_g.py", "create", {"H007"}),
        ("tests/test_new.py", "modify", {"H007"}),
        ("src/tests/greet.rs", "create", {"H008"}),
        ("crates/a/src/tests/greet.rs", "create", {"H008"}),
        ("src/helper.py", "create", {"H008"}),
    ],
)
def test_a_test_file_is_where_tests_are_looked_for(path: str, action: str, found: set[str]) -> None:
    assert task_rules(test_files=[{"path": path, "action": action}]) == found


def test_the_project_can_say_itself_where_tests_are() -> None:
    (task,) = tasks_of({"test_files": [{"path": "checks/x.py", "action": "create"}]})
    assert {
        p.rule for p in lint_task(task_md(task), task, existing=HERE, names=names, test_path=names.is_plausible)
    } == {"H008"}
    assert (
        lint_task(task_md(task), task, existing=HERE, names=names, test_path=lambda path: path.startswith("checks/"))
        == ()
    )


@pytest.mark.parametrize(
    "criteria", [[], ["works"], ["It works as expected."], ["ok"], [" "], ["The feature is implemented"]]
)
def test_criteria_that_are_missing_or_cannot_fail_are_found(criteria: list[str]) -> None:
    assert task_rules(acceptance_criteria=criteria) == {"H009"}


@pytest.mark.parametrize(
    "criterion", ["All existing tests pass", "`greet(' ')` works like `greet('')`", "exit code is 2", "is idempotent"]
)
def test_a_short_criterion_that_can_fail_is_fine(criterion: str) -> None:
    assert task_rules(acceptance_criteria=[criterion]) == set()


@pytest.mark.parametrize(
    ("item", "clean"),
    [
        ("- ACTION: greet(x) OUTCOME: raises", True),
        ("- Action: greet(x)\n  Outcome: raises", True),
        ("- ACTION: greet(x)", False),
        ("- ACTION: OUTCOME: raises", False),
        ("- ACTION: x OUTCOME:", False),
        ("- it greets", False),
        ("- ACTION: build OUTCOME: the enum has three variants", False),
    ],
)
def test_a_behaviour_has_an_action_and_an_observable_outcome(item: str, clean: bool) -> None:
    text = f"## Test Design\n\n### Behaviours\n\n{item}\n\n### Edge Cases\n\n- free text\n"
    assert plan_problems(text) == ([] if clean else [("H010", 5)])


def test_many_files_are_a_note_and_do_not_send_the_draft_back() -> None:
    files = [{"path": f"src/{name}.py", "action": "create"} for name in "abc"]
    problems = task_problems(files=files)
    assert [(problem.rule, problem.severity) for problem in problems] == [("H011", Weight.NOTE)]
    assert drafted(problems) is Signal.DRAFTED


def test_a_title_that_a_subject_cuts_is_a_note() -> None:
    assert task_problems(title="x" * 62) == []
    (problem,) = task_problems(title="x" * 63)
    assert (problem.rule, problem.severity) == ("H018", Weight.NOTE)
    assert "62" in problem.message


@pytest.mark.parametrize(
    ("line", "open_"),
    [
        ("Should it be cached?", True),
        ("A list (or a dict?) is used.", True),
        ("The `?` operator is used.", False),
        ("See https://x.org/a?b=c for it.", False),
        ('It asks "Really?" first.', False),
        ("Optional<T>?.get is called.", False),
    ],
)
def test_an_open_question_in_the_approach_is_found(line: str, open_: bool) -> None:
    assert plan_problems(f"## Approach\n\n{line}\n") == ([("H012", 3)] if open_ else [])
    assert plan_problems(f"## Risks\n\n{line}\n") == []


def test_a_file_that_controls_tests_or_builds_is_noted() -> None:
    problems = task_problems(files=[{"path": "pyproject.toml", "action": "modify"}])
    assert [(problem.rule, problem.severity) for problem in problems] == [("H013", Weight.NOTE)]


@pytest.mark.parametrize(
    ("origin", "path", "rules"),
    [
        ("tests/test_g.py", "tests/test_new.py", set[str]()),
        ("tests/test_none.py", "tests/test_new.py", {"H007"}),
        ("tests/test_g.py", "src/new.py", {"H008"}),
    ],
)
def test_a_test_file_is_renamed_from_one_that_is_there_to_where_tests_are(
    origin: str, path: str, rules: set[str]
) -> None:
    assert task_rules(test_files=[{"path": path, "action": "rename", "from": origin}]) == rules


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([{"files": list[object]()}], "names no file"),
        ([{"test_files": list[object]()}], "names no test file"),
        ([{"test_files": [{"path": "src/g.py", "action": "modify"}]}], "as production and as test file"),
        ([{"files": [{"path": "n.py", "action": "create"}]}] * 2, "both create n.py"),
        ([{"title": "t"}] * 4, "4 tasks; accepted are 3 at most"),
    ],
)
def test_tasks_that_do_not_fit_together_are_found(tasks: list[dict[str, Any]], message: str) -> None:
    problems = lint_split(tasks_of(*tasks), names, max_tasks=3)
    assert [problem.rule for problem in problems] == ["H014"]
    assert message in problems[0].message
    assert drafted(problems) is Signal.HYGIENE


def test_tasks_that_fit_together_are_clean() -> None:
    rust = {
        "files": [{"path": "src/lib.rs", "action": "modify"}],
        "test_files": [{"path": "src/lib.rs", "action": "modify"}],
    }
    docs: dict[str, Any] = {"files": [], "test_files": [], "evidence": "regression"}
    assert lint_split(tasks_of({}, rust, docs), names, max_tasks=3) == ()


@given(st.text(alphabet='`~#- \n?:wait,ctulyTODO.(){}def|"', max_size=200))
def test_no_text_makes_the_linter_raise(text: str) -> None:
    problems = lint_plan(text, files=(), existing=())
    assert {problem.rule for problem in problems} <= set(RULES)
    assert all(1 <= problem.line <= text.count("\n") + 1 for problem in problems)


@pytest.mark.parametrize("piece", ["`", "``", '"', "bash -c ", "- ", "wait, ", "nix develop ", "a.", "-x "])
def test_a_line_of_a_megabyte_costs_no_time(piece: str) -> None:
    lint_plan(piece * (1_000_000 // len(piece)), files=(), existing=())
