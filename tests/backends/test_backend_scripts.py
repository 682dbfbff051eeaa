from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from pipeline.agents.backends import BACKENDS
from pipeline.agents.backends.protocol import AgentJob, Ended
from pipeline.agents.backends.scripted import Answer, ScriptMismatchError, When, choose, load_script
from pipeline.config.agents import AgentConfig
from pipeline.errors import UserError
from pipeline.faces import demo
from pipeline.outcomes import Reason
from pipeline.process import Mount
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.vocabulary import Role


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "script.yaml"
    path.write_text(text)
    return path


def document(**fields: Any) -> bytes:
    return json.dumps(
        {"dispatch": "001-x", "role": "make", "kind": "implement", "task": "1", "attempt": 1, **fields}
    ).encode()


def job(tmp_path: Path, script: Path | None, dispatch: bytes, used: frozenset[int] = frozenset()) -> AgentJob:
    view, exchange = tmp_path / "view", tmp_path / f"exchange-{len(list(tmp_path.iterdir()))}"
    view.mkdir(exist_ok=True)
    exchange.mkdir()
    agent = AgentConfig(script=None if script is None else str(script))
    return AgentJob(NoBox(), dispatch, Mount(view, Path("/view"), writable=True), exchange, agent=agent, used=used)


def test_the_demo_has_answers_for_a_plan_that_a_person_sends_back_twice() -> None:
    path = Path(demo.__file__).with_name("agents.yaml")
    entries = load_script(path)
    asked = [("plan", "orchestrator"), ("review-plan", "check"), ("review-plan", "simplify")]
    used: set[int] = set()
    for attempt in range(1, 5):  # two of the story, two that are sent back
        for kind, role in asked:
            told = document(kind=kind, role=role, attempt=attempt, task=None)
            used.add(choose(path, entries, told, used))
    assert len(used) == 12
    report = entries[max(used) - 2].report
    assert report is not None
    assert "scripted" in report["risks"][0]


def test_a_script_of_the_contract_is_understood(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
- when: {role: test, kind: write-tests, task: 1}
  files: {tests/test_greet.py: "..."}
  run: ["sh", "-c", "..."]
  report: {verdict: TESTS_READY}
- report: {verdict: no}
""",
    )
    first, second = load_script(path)
    assert first.when == When(role=Role.TEST, kind="write-tests", task="1")
    assert second.report == {"verdict": "no"}, "YAML 1.2: no is a word"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- whem: {}", "/0/whem"),
        ("- when: {rôle: make}", "/0/when/rôle"),
        ("- when: {role: maker}", "/0/when/role"),
        ("- when: {attempt: first}", "/0/when/attempt"),
        ("- exit: 256", "/0/exit"),
        ("- files: {a: 1}", "/0/files/a"),
        ("- run: []", "/0/run"),
        ("when: {}", "wrong at /"),
        ("- exit: 1\n  exit: 2", "exit"),
        ("- {", "not YAML"),
        ("- !!python/object/apply:os.system [id]", "tags are not accepted"),
    ],
)
def test_what_a_script_does_not_mean_is_an_error_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UserError) as caught:
        load_script(write(tmp_path, text))
    assert caught.value.reason is Reason.CONFIG
    assert words in caught.value.message


def test_a_script_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nothing\.yaml"):
        load_script(tmp_path / "nothing.yaml")


def test_the_first_unused_match_is_taken() -> None:
    entries = [Answer(when=When(role=Role.CHECK)), Answer(when=When(kind="implement")), Answer()]
    assert choose(Path("s"), entries, document(), frozenset()) == 1
    assert choose(Path("s"), entries, document(), {1}) == 2
    assert choose(Path("s"), entries, document(role="check"), {1}) == 0


@pytest.mark.parametrize(
    ("when", "matches"),
    [
        (When(), True),
        (When(task="1", attempt=1), True),
        (When(attempt=2), False),
        (When(task="2"), False),
        (When(step="implement"), False),
    ],
)
def test_every_key_given_must_agree(when: When, matches: bool) -> None:
    assert when.matches(json.loads(document())) is matches


def test_a_dispatch_that_nothing_matches_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "- when: {role: make, task: 1}\n- when: {role: check}\n")
    with pytest.raises(ScriptMismatchError) as caught:
        anyio.run(
            BACKENDS["scripted"].run, job(tmp_path, path, document(dispatch="007-implement-make"), frozenset({0}))
        )
    assert "007-implement-make" in caught.value.message
    assert '"task": "1"' in caught.value.message
    assert "entries 0 match, but are used" in caught.value.message


def test_files_are_written_and_deleted_before_the_command_runs(tmp_path: Path) -> None:
    (tmp_path / "view").mkdir()
    (tmp_path / "view/old").write_text("x")
    path = write(
        tmp_path, "- files: {deep/er/new: 'ü\n', old: null}\n  run: [sh, -c, 'cat deep/er/new; ls']\n  stdout: said\n"
    )
    result = anyio.run(BACKENDS["scripted"].run, job(tmp_path, path, document()))
    assert result.stdout.decode().split() == ["ü", "deep", "said"]
    assert not (tmp_path / "view/old").exists()


def test_a_file_that_cannot_be_deleted_is_a_failed_agent_not_a_success(tmp_path: Path) -> None:
    path = write(tmp_path, "- files: {nothing: null}\n  report: {result: COMPLETE}\n")
    result = anyio.run(BACKENDS["scripted"].run, job(tmp_path, path, document()))
    assert result.ended is Ended.NONZERO
    assert result.report_file is None
    assert "nothing" in (result.complaint or "")


def test_the_backends_need_their_settings(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="script"):
        anyio.run(BACKENDS["scripted"].run, job(tmp_path, None, document()))
    with pytest.raises(UserError, match="argv"):
        anyio.run(BACKENDS["command"].run, job(tmp_path, None, document()))
