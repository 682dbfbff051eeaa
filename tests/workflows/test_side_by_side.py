"""Tasks of one run side by side: begun together, accepted in the order of the split, measured as they are accepted.

The numbers are those of the acceptance checks; `limits.parallel` may be more than 1 because these hold.
"""

from __future__ import annotations

import json
import random
import signal
from typing import TYPE_CHECKING, Any

import pytest
from crashes import KILLED, Bell, Result, die_at, going_on, kill_after, problems, repeated_dispatches, spawn
from e2e.lanes import diagnoses, makes, module_task, modules_project, rules, until_tests, writes
from kit import AFTER_MAKE
from workflows.side_by_side import (
    NAMES,
    code,
    doubled,
    lanes,
    make,
    new_check,
    of_make,
    of_test,
    old_check,
    play,
    split,
    task,
    verified,
)

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry, Project

pytestmark = pytest.mark.slow


def story(rng: random.Random | None = None) -> list[Entry]:
    """Four tasks: the third needs the first, the fourth changes a file of the second; each agent takes its time."""
    four = [task("ant"), task("bee"), task("cow", depends_on=[1]), task("dog")]
    four[3]["files"].append({"path": "bee.sum", "action": "modify"})
    entries = split(*four)
    for number, name in enumerate(NAMES[:4], 1):
        pause: dict[str, Any] = {"sleep_s": round(rng.uniform(0, 0.4), 3)} if rng is not None else {}
        entries += [of_test(number, name, **pause), of_make(number, name, **pause)]
    return [*entries, *AFTER_MAKE]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """What the story comes to when nobody is slow and nothing is killed; its commits verify."""
    project = make(tmp_path_factory.mktemp("undisturbed"), 4)
    played = play(project, story())
    assert played.document["_code"] == 0, played.document["_stderr"]
    subjects = [f"fix: double {name}" for name in NAMES[:4]]
    assert verified(project) == [*subjects, "chore(todo): close GAL-1"]
    assert (problems(project), repeated_dispatches(project)) == ([], [])
    return Result.of(project)


def test_two_independent_tasks_are_at_work_at_once_and_accepted_in_order(tmp_path: Path) -> None:
    project = make(tmp_path, 2)
    slow, *others = doubled(["ant", "bee"])[5:]
    played = play(project, [*doubled(["ant", "bee"])[:5], {**slow, "sleep_s": 1.0}, *others])
    assert played.document["_code"] == 0, played.document["_stderr"]
    rows = lanes(project)
    assert rows.index("task-2 implement/GREEN") < rows.index("task-1 implement/GREEN"), "the second ends first"
    assert rows.index("task-1 integrate/ACCEPTED") < rows.index("task-2 integrate/ACCEPTED")
    assert verified(project) == ["fix: double ant", "fix: double bee", "chore(todo): close GAL-1"]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.broad
def test_07_delays_never_change_the_commits(seed: int, tmp_path: Path, undisturbed: Result) -> None:
    project = make(tmp_path, 4)
    played = play(project, story(random.Random(seed)))  # noqa: S311  (a schedule, no secret)
    assert played.document["_code"] == 0, played.document["_stderr"]
    assert Result.of(project) == undisturbed


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.broad
def test_08_kills_change_nothing_and_nothing_finished_is_asked_again(
    seed: int, tmp_path: Path, undisturbed: Result
) -> None:
    project = make(tmp_path, 4)
    rng = random.Random(seed)  # noqa: S311  (a schedule, no secret)
    project.use_script(story(rng), "[limits]\nparallel = 3\n")
    kills = int(die_at(project, "after journal dispatch_finished", 5 + seed % 8, "run", "GAL-1") == KILLED)
    while kills < 10 and kill_after(project, rng.uniform(0.3, 2.0), *going_on(project)) == KILLED:
        kills += 1
    last = project.redfirst(*going_on(project))
    assert last.returncode == 0 or "has ended (completed, done)" in last.stderr, last.stderr
    assert kills >= 1
    assert Result.of(project) == undisturbed
    assert (problems(project), repeated_dispatches(project)) == ([], [])
    assert "any/ESCAPE" not in project.rows()


# --- what was accepted meanwhile is in the way -----------------------------------------------------------------------


def shared(tmp_path: Path) -> Project:
    """Two modules, and a function of the first that the second may have, too: then that one counts."""
    return make(tmp_path, 2, **{"ant.sum": f"{code('ant')}pair n = n * 1\n"})


def pairs(second: str, redone: str) -> list[Entry]:
    """Two tasks that each change what `pair` gives, in files of their own: of both the second one's counts."""
    new = {"ant": f"{code('ant')}pair n = n * 2\n", "bee": f"{code('bee')}pair n = {second}\n"}
    return [
        *split(task("ant"), task("bee")),
        of_test(1, "ant", {"ant.check": f"{old_check('ant')}pair2: pair 2 = 4\n"}),
        of_make(1, "ant", {"ant.sum": new["ant"]}),
        of_test(2, "bee", {"bee.check": f"{old_check('bee')}pair3: pair 3 = 9\n"}),
        of_make(2, "bee", {"bee.sum": new["bee"]}),
        of_make(2, "bee", {"bee.sum": f"{code('bee')}pair n = {redone}\n"}),
        *AFTER_MAKE,
    ]


@pytest.mark.broad
def test_23_green_alone_red_together_is_redone_over_the_head(tmp_path: Path) -> None:
    project = shared(tmp_path)
    played = play(project, pairs("n * 3", "n * n"))
    assert played.document["_code"] == 0, played.document["_stderr"]
    of_bee = [row for row in lanes(project) if row.startswith("task-2")]
    assert of_bee[-4:] == [
        "task-2 implement/GREEN",
        "task-2 integrate/REGRESSION",
        "task-2 implement/GREEN",
        "task-2 integrate/ACCEPTED",
    ]
    assert played.asked("implement", 2, task="2").text("measured").count("pair2"), "@make is told what breaks"
    assert verified(project) == ["fix: double ant", "fix: double bee", "chore(todo): close GAL-1"]
    assert project.git("show", "work~1:bee.sum").endswith("pair n = n * n")


@pytest.mark.broad
def test_what_is_redone_in_vain_is_diagnosed(tmp_path: Path) -> None:
    project = shared(tmp_path)
    entries = pairs("n * 3", "n * 3")
    again = of_make(2, "bee", {"bee.sum": f"{code('bee')}pair n = n * n\n"})
    played = play(project, [*entries[:-2], diagnoses(2, "production_logic", "square it"), again, *AFTER_MAKE])
    assert played.document["_code"] == 0, played.document["_stderr"]
    of_bee = [row.removeprefix("task-2 ") for row in lanes(project) if row.startswith("task-2")]
    assert of_bee[-5:] == [
        "integrate/REGRESSION",
        "implement/REGRESSION",
        "diagnose/PRODUCTION_LOGIC",
        "implement/GREEN",
        "integrate/ACCEPTED",
    ]
    verified(project)


@pytest.mark.broad
def test_24_red_that_is_gone_is_diagnosed(tmp_path: Path) -> None:
    project = shared(tmp_path)
    entries = [
        *split(task("ant"), task("bee")),
        of_test(1, "ant", {"ant.check": f"{old_check('ant')}pair2: pair 2 = 4\n"}),
        of_make(1, "ant", {"ant.sum": f"{code('ant')}pair n = n * 2\n"}),
        of_test(2, "bee", {"bee.check": f"{old_check('bee')}pair3: pair 3 = 6\n"}),
        of_make(2, "bee", {"bee.sum": f"{code('bee')}pair n = n + n\n"}),
        diagnoses(2, "already_done", "the first task brought it"),
        *AFTER_MAKE,
    ]
    played = play(project, entries)
    assert played.document["_code"] == 0, played.document["_stderr"]
    assert [row for row in lanes(project) if row.startswith("task-2")][-2:] == [
        "task-2 integrate/RED_GONE",
        "task-2 diagnose/ALREADY_DONE",
    ]
    assert verified(project) == ["fix: double ant", "chore(todo): close GAL-1"]
    assert played.tasks() == {"1": "done", "2": "already_done"}


@pytest.mark.broad
def test_25_the_same_new_helper_is_a_conflict_and_redone(tmp_path: Path) -> None:
    """Both tasks are granted a file that neither of them names."""
    project = make(tmp_path, 2)

    def stuck(number: int, name: str) -> Entry:
        need = {"path": "zoo.sum", "action": "create", "why": "a helper"}
        return {
            "when": {"kind": "implement", "task": str(number)},
            "report": {"result": "INCOMPLETE", "blocking_issue": f"{name} wants a helper", "needs": [need]},
        }

    entries = split(task("ant"), task("bee"))
    for number, name in enumerate(NAMES[:2], 1):
        helped = {f"{name}.sum": code(name, 2), "zoo.sum": f"zoo{number} n = n\n"}
        entries += [
            of_test(number, name),
            stuck(number, name),
            rules(number, "amend", accepted=True, notes="it may"),
            of_make(number, name, helped),
        ]
    both = "zoo1 n = n\nzoo2 n = n\n"
    entries.append(of_make(2, "bee", {"bee.sum": code("bee", 2), "zoo.sum": both}))
    played = play(project, [*entries, *AFTER_MAKE])
    assert played.document["_code"] == 0, played.document["_stderr"]
    of_bee = [row.removeprefix("task-2 ") for row in lanes(project) if row.startswith("task-2")]
    assert of_bee[of_bee.index("integrate/CONFLICT") :] == [
        "integrate/CONFLICT",
        "implement/GREEN",
        "integrate/ACCEPTED",
    ]
    assert verified(project) == ["fix: double ant", "fix: double bee", "chore(todo): close GAL-1"]


@pytest.mark.broad
def test_25_the_same_new_file_beside_the_tests_is_written_again_over_the_head(tmp_path: Path) -> None:
    project = make(tmp_path, 2)
    entries = split(task("ant"), task("bee"))
    for number, name in enumerate(NAMES[:2], 1):
        extra = f"{name}4: {name} 4 = 8\n"
        entries += [
            of_test(number, name, {f"{name}.check": new_check(name), "zoo.check": extra}),
            of_make(number, name),
        ]
    again = {"bee.check": new_check("bee"), "yak.check": "bee4: bee 4 = 8\n"}
    played = play(project, [*entries, of_test(2, "bee", again), *AFTER_MAKE])
    assert played.document["_code"] == 0, played.document["_stderr"]
    of_bee = [row.removeprefix("task-2 ") for row in lanes(project) if row.startswith("task-2")]
    assert of_bee[of_bee.index("integrate/TEST_CONFLICT") :] == [
        "integrate/TEST_CONFLICT",
        "write-tests/RED",
        "implement/GREEN",
        "integrate/ACCEPTED",
    ]
    verified(project)
    assert project.git("show", "work:zoo.check") == "ant4: ant 4 = 8"


@pytest.mark.broad
def test_what_check_agreed_to_stays_with_the_evidence_over_the_head(tmp_path: Path) -> None:
    project = make(tmp_path, 2)
    changed = of_test(2, "bee", {"bee.check": "bee0: bee 0 = 1\n"})
    other = of_make(2, "bee", {"bee.sum": "bee n = n * 2 + 1\n"})
    agreed = {"when": {"kind": "judge", "question": "tests", "task": "2"}, "report": {"verdict": "ACCEPTABLE"}}
    leave = diagnoses(2, "production_logic", tests_to_change=[{"id": "bee.check::bee0", "reason": "the issue says 1"}])
    entries = [*split(task("ant"), task("bee")), of_test(1, "ant"), of_make(1, "ant"), changed, agreed, other, leave]
    played = play(project, [*entries, *AFTER_MAKE])
    assert played.document["_code"] == 0, played.document["_stderr"]
    of_bee = [row.removeprefix("task-2 ") for row in lanes(project) if row.startswith("task-2")]
    assert of_bee == [
        "write-tests/CHANGED_OLD_TEST",
        "check-tests/ACCEPTABLE",
        "implement/HIDDEN_REGRESSION",
        "diagnose/PRODUCTION_LOGIC",
        "implement/GREEN",
        "integrate/ACCEPTED",
    ], "who agreed to another text has not said that the old one may fail"
    evidence = json.loads(played.artifact("evidence/task-2.json"))
    assert evidence["changed_old"] == ["bee.check::bee0"]
    assert evidence["judged_by"].startswith("judgements/")
    verified(project)


@pytest.mark.broad
def test_stubs_that_break_what_was_accepted_meanwhile_are_no_commit_of_their_own(tmp_path: Path) -> None:
    """Both tasks bring a function of one name; the stub of the second would be taken for that of the first."""
    project = make(tmp_path, 2)

    def bringing(name: str) -> dict[str, Any]:
        return task(name, symbols=[{"path": f"{name}.sum", "name": "pair", "new": True}])

    def stubbed(number: int, name: str) -> Entry:
        return {
            "when": {"kind": "stub", "task": str(number)},
            "files": {f"{name}.sum": f"{code(name)}pair n = todo\n"},
            "report": {"result": "COMPLETE", "summary": "pair is there, as a stub"},
        }

    made = pairs("n * n", "n * n")[5:9]
    entries = [*split(bringing("ant"), bringing("bee")), stubbed(1, "ant"), stubbed(2, "bee"), *made, *AFTER_MAKE]
    played = play(project, entries)
    assert played.document["_code"] == 0, played.document["_stderr"]
    assert verified(project) == [
        "feat: scaffold pair with todo stubs",
        "fix: double ant",
        "fix: double bee",
        "chore(todo): close GAL-1",
    ]


# --- what a run keeps to ---------------------------------------------------------------------------------------------


@pytest.mark.broad
def test_26_lanes_together_may_spend_no_more_than_the_budget(tmp_path: Path) -> None:
    project = make(tmp_path, 4)
    played = play(project, doubled(NAMES[:4], sleep_s=0.2), parallel=4, extra="[budget]\ncost_usd = 1\n")
    assert played.document["_code"] == 0, played.document["_stderr"]
    reserved: dict[str, float] = {}
    most = 0
    for line in project.journal():
        data = line["data"]
        if line["kind"] == "dispatch_started":
            reserved[data["dispatch"]] = data["reserved"]["cost_usd"]
            assert sum(reserved.values()) <= 1 + 1e-9
            most = max(most, len(reserved))
        elif line["kind"] == "dispatch_finished":
            del reserved[data["dispatch"]]
    assert most == 4, "all four were at work at once"


@pytest.mark.broad
def test_27_parallel_dispatches_are_no_escape(tmp_path: Path) -> None:
    """Fifty dispatches in ten lanes; a thousand are in `test_kills_of_recipes.py`."""
    project = wide(tmp_path, 22)
    played = play(project, doubled([f"w{at}" for at in range(10)]), parallel=10)
    assert played.document["_code"] == 0, played.document["_stderr"]
    assert "any/ESCAPE" not in project.rows()


def wide(tmp_path: Path, count: int) -> Project:
    names = [f"w{at}" for at in range(count)]
    more = {f"{name}.sum": code(name) for name in names} | {f"{name}.check": old_check(name) for name in names}
    return make(tmp_path, 0, **more)


@pytest.mark.broad
def test_check_01_one_at_a_time_is_journalled_as_ever(tmp_path: Path) -> None:
    """No lane, no INTEGRATE, no field that says anything of tasks side by side."""
    project = make(tmp_path, 2)
    play(project, doubled(["ant", "bee"]), parallel=1)
    decisions = [line["data"] for line in project.journal() if line["kind"] == "decision"]
    assert [data["row"] for data in decisions][5:] == [
        "review-split/ACCEPTABLE",
        "write-tests/RED",
        "implement/GREEN",
        "write-tests/RED",
        "implement/GREEN",
        "final-review/ACCEPTABLE",
        "publish/PUBLISHED",
    ]
    text = json.dumps(decisions)
    assert not [word for word in ('"lane"', '"trees"', '"after"', "integrate") if word in text]


@pytest.mark.broad
def test_a_run_that_the_user_stops_asks_the_open_lanes_again(tmp_path: Path) -> None:
    project, bell = modules_project(tmp_path, range(1, 3)), Bell(tmp_path)
    begin = until_tests(module_task(1), module_task(2))
    project.use_script([*begin, bell.sleeper(writes(1)), writes(2), makes(2)])
    with spawn(project, "run", "GAL-1", "--parallel", "2", *bell.flags) as driver:
        bell.wait(driver)
        driver.send_signal(signal.SIGINT)
        assert driver.stderr is not None
        said = next(line for line in driver.stderr if "A second Ctrl-C stops now" in line)
        driver.send_signal(signal.SIGINT)
        driver.communicate(timeout=300)
    assert (driver.returncode, "006-write-tests-test" in said) == (130, True)
    project.use_script([*begin, writes(1), writes(2), makes(1), makes(2), *AFTER_MAKE])
    done = project.redfirst("resume", "run-GAL-1", *bell.flags)
    assert done.returncode == 0, done.stderr
    assert repeated_dispatches(project) == []
    subjects = ["feat: let value 1 be right", "feat: let value 2 be right", "chore(todo): close GAL-1"]
    assert verified(project) == subjects
