"""What a run may still spend: shares of limits, reserved and settled, with what a crash took away."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runs.real import info_of, make_repository

from pipeline.config.tables import Budget
from pipeline.run.files import to_json, write_atomic
from pipeline.run.info import DispatchRecord, DispatchResult, ModelTraffic, Reserved, Usage
from pipeline.run.run import Run
from pipeline.run.spending import Held, Spent, UsedUp, by_phase, by_role, phase_of, reserve, spent
from pipeline.vocabulary import Role

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def run(tmp_path: Path) -> Run:
    repository = make_repository(tmp_path / "repo")
    folder = tmp_path / "run-X-1"
    folder.mkdir()
    return Run.create(folder, info_of(repository, "run-X-1"))


def begun(run: Run, role: Role = Role.MAKE, step: str = "implement", **facts: Any) -> DispatchRecord:
    number = len(run.records) + 1
    record = DispatchRecord(
        dispatch=f"{number:03}-{step}-{role}",
        number=number,
        step=step,
        visit=number,
        resumes=0,
        role=role,
        kind="implement",
        question=None,
        task=None,
        attempt=1,
        reask=None,
        base_tree="0" * 40,
        backend=facts.get("backend", "claude"),
        model=facts.get("model", "sonnet"),
        reserved=facts.get("reserved"),
    )
    run.start_dispatch(record)
    (run.folder / "dispatches" / record.dispatch).mkdir(parents=True)
    return record


def over(run: Run, record: DispatchRecord, usage: Usage, traffic: ModelTraffic | None = None) -> None:
    result = DispatchResult(dispatch=record.dispatch, base_tree="0" * 40, usage=usage, model_traffic=traffic)
    write_atomic(run.folder / "dispatches" / record.dispatch / "result.json", to_json(result.model_dump(mode="json")))
    run.finish_dispatch(result)


def ended(
    run: Run,
    usage: Usage,
    role: Role = Role.MAKE,
    step: str = "implement",
    traffic: ModelTraffic | None = None,
    **facts: Any,
) -> None:
    over(run, begun(run, role, step, **facts), usage, traffic)


def used(cost: float | None, tokens: int | None = 10) -> Usage:
    return Usage(cost_usd=cost, input_tokens=tokens, output_tokens=0 if tokens is not None else None)


MAKE = (Role.MAKE, "implement")
CHECK = (Role.CHECK, "review-plan")
SIMPLIFY = (Role.SIMPLIFY, "review-plan")


def test_without_a_budget_nothing_is_limited(run: Run) -> None:
    ended(run, used(None, None))
    assert reserve(run, Budget(), [MAKE]) == [Reserved()]


def test_a_dispatch_gets_what_is_left(run: Run) -> None:
    ended(run, used(1.5, 100))
    budget = Budget.model_validate({"cost_usd": 5, "tokens": 1000})
    assert reserve(run, budget, [MAKE]) == [Reserved(cost_usd=3.5, tokens=900)]


def test_side_by_side_dispatches_share_it(run: Run) -> None:
    budget = Budget.model_validate({"cost_usd": 4, "roles": {"check": {"cost_usd": 1}}})
    assert reserve(run, budget, [CHECK, SIMPLIFY]) == [Reserved(cost_usd=1), Reserved(cost_usd=2)]


def test_the_smallest_limit_decides(run: Run) -> None:
    ended(run, used(1), Role.MAKE)
    budget = Budget.model_validate(
        {"cost_usd": 9, "roles": {"make": {"cost_usd": 3}}, "phases": {"make": {"tokens": 50}}}
    )
    assert reserve(run, budget, [MAKE]) == [Reserved(cost_usd=2, tokens=40)]
    assert reserve(run, budget, [CHECK]) == [Reserved(cost_usd=8)]


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ({"cost_usd": 2}, "2.0000 of budget.cost_usd = 2 USD are spent"),
        ({"tokens": 10}, "10 of budget.tokens = 10 are spent"),
        ({"roles": {"make": {"cost_usd": 1}}}, "budget.roles.make.cost_usd"),
        ({"phases": {"make": {"cost_usd": 1}}}, "budget.phases.make.cost_usd"),
    ],
)
def test_an_reached_limit_stops_the_run(run: Run, budget: dict[str, Any], words: str) -> None:
    ended(run, used(2))
    stopped = reserve(run, Budget.model_validate(budget), [MAKE])
    assert isinstance(stopped, UsedUp)
    assert words in stopped.why


def test_an_unknown_cost_is_not_nothing_and_more_money_goes_on(run: Run) -> None:
    ended(run, used(None), reserved=Reserved(cost_usd=4))
    assert reserve(run, Budget(cost_usd=5), [MAKE]) == [Reserved(cost_usd=1)]
    stopped = reserve(run, Budget(cost_usd=4), [MAKE])
    assert isinstance(stopped, UsedUp)
    assert "4 USD are spent, with the whole share of 001-implement-make, since nobody knows" in stopped.why
    assert spent(run).cost_usd == 0, "what is told is what is known"
    ended(run, used(1, None), reserved=Reserved(tokens=50))
    assert reserve(run, Budget(tokens=100), [MAKE]) == [Reserved(tokens=40)]


def test_what_was_unknown_before_there_was_a_limit_does_not_stop_the_run_for_ever(run: Run) -> None:
    ended(run, used(None, None))
    assert reserve(run, Budget(cost_usd=1, tokens=9), [MAKE]) == [Reserved(cost_usd=1, tokens=9)]


def test_an_agent_that_asks_no_model_costs_nothing(run: Run) -> None:
    ended(run, used(None, None), backend="human", model=None)
    ended(run, used(None, None), backend="scripted", model=None)
    assert reserve(run, Budget(cost_usd=1), [MAKE]) == [Reserved(cost_usd=1)]


def test_an_agent_cannot_save_money_by_what_it_says(run: Run) -> None:
    seen = ModelTraffic(requests=3, refused=0, bytes_up=1, bytes_down=1, cost_usd=0.75)
    ended(run, used(0.01), traffic=seen)
    assert spent(run).cost_usd == 0.75
    ended(run, used(2), traffic=seen)
    assert spent(run).cost_usd == 2.75


def log(run: Run, name: str, *lines: dict[str, Any]) -> None:
    path = run.folder / "dispatches" / name / "model.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"half a li')


def test_a_dispatch_that_a_crash_took_away_counts_with_what_the_gateway_wrote_down(run: Run) -> None:
    line = {"status": 200, "tokens": {"input": 30, "output": 5}, "cost_usd": 0.25}
    record = begun(run)
    log(run, record.dispatch, line, line, {"status": 429}, {"status": 200, "method": "HEAD"})
    assert (spent(run).tokens, spent(run).cost_usd, spent(run).unpriced) == (70, 0.5, ())
    log(run, f"{record.dispatch}.lost-1", line)
    assert (spent(run).tokens, spent(run).cost_usd) == (105, 0.75)


def test_a_dispatch_that_never_began_cost_nothing(run: Run) -> None:
    begun(run)
    assert (spent(run).unpriced, spent(run).cost_usd) == ((), 0)


def test_sums_that_are_a_little_off_buy_nothing(run: Run) -> None:
    for _ in range(5):
        ended(run, used(0.0006))
    assert isinstance(reserve(run, Budget(cost_usd=0.003), [MAKE]), UsedUp)


def test_a_lost_dispatch_of_which_nothing_is_known_stays_unknown(run: Run) -> None:
    record = begun(run)
    (run.folder / "dispatches" / record.dispatch / "process.json").write_text("{}")
    assert spent(run).unpriced == (record.dispatch,)
    line = {"status": 200, "tokens": {"input": 1, "output": 1}, "cost_usd": None}
    log(run, record.dispatch, line)
    assert spent(run).unpriced == (record.dispatch,)
    assert spent(run).uncounted == ()


def test_roles_and_phases_are_told_apart(run: Run) -> None:
    ended(run, used(1, 10), Role.CHECK, "review-plan")
    ended(run, used(2, 20), Role.MAKE, "implement")
    ended(run, used(4, 40), Role.CHECK, "diagnose")
    assert {role: taken.cost_usd for role, taken in by_role(run).items()} == {"check": 5, "make": 2}
    assert {phase: taken.tokens for phase, taken in by_phase(run).items()} == {"plan": 10, "make": 60}
    assert phase_of("try") is None


def test_what_is_at_work_has_its_share(run: Run) -> None:
    budget = Budget(cost_usd=1, tokens=100)
    one = begun(run, reserved=Reserved(cost_usd=0.25, tokens=40))
    log(run, one.dispatch, {"status": 200, "tokens": {"input": 1, "output": 1}, "cost_usd": 0.1})
    assert reserve(run, budget, [MAKE]) == [Reserved(cost_usd=0.75, tokens=60)]
    assert reserve(run, budget, [MAKE], beside=2) == [Reserved(cost_usd=0.25, tokens=20)]
    assert spent(run).cost_usd == 0.1, "a share is not spent"
    over(run, one, used(0.05))
    assert reserve(run, budget, [MAKE]) == [Reserved(cost_usd=0.95, tokens=90)]


def test_who_finds_all_of_it_in_shares_waits_and_is_not_stopped(run: Run) -> None:
    budget = Budget(cost_usd=1)
    one = begun(run, reserved=Reserved(cost_usd=1))
    assert isinstance(reserve(run, budget, [MAKE]), Held)
    over(run, one, used(0.4))
    assert reserve(run, budget, [MAKE]) == [Reserved(cost_usd=0.6)]
    over(run, begun(run, reserved=Reserved(cost_usd=0.6)), used(0.6))
    assert isinstance(reserve(run, budget, [MAKE]), UsedUp)


def test_a_crash_takes_the_share_away_and_not_what_was_spent(run: Run) -> None:
    one = begun(run, reserved=Reserved(cost_usd=1))
    log(run, one.dispatch, {"status": 200, "tokens": {"input": 1, "output": 1}, "cost_usd": 0.25})
    again = Run.load(run.folder, driving=True)
    assert reserve(again, Budget(cost_usd=1), [MAKE]) == [Reserved(cost_usd=0.75)]
    again.start_dispatch(one.model_copy(update={"reserved": Reserved(cost_usd=0.5)}))
    assert reserve(again, Budget(cost_usd=1), [MAKE]) == [Reserved(cost_usd=0.25)], "its folder is still the lost one's"
    folder = run.folder / "dispatches" / one.dispatch
    folder.rename(folder.with_name(f"{folder.name}.lost-1"))
    folder.mkdir()
    assert reserve(again, Budget(cost_usd=1), [MAKE]) == [Reserved(cost_usd=0.25)]
    again.lose_dispatch(one.dispatch)
    assert reserve(again, Budget(cost_usd=1), [MAKE]) == [Reserved(cost_usd=0.75)]


@settings(max_examples=8)
@given(data=st.data())
def test_four_lanes_never_spend_more_than_there_is(data: st.DataObject, tmp_path_factory: Any) -> None:
    """Acceptance check 26: in any order of beginning, spending, ending and crashing."""
    place = tmp_path_factory.mktemp("lanes")
    folder = place / "run-X-1"
    folder.mkdir()
    run = Run.create(folder, info_of(make_repository(place / "repo"), "run-X-1"))
    budget, paid = Budget(cost_usd=1), 0.0
    at_work: dict[int, tuple[DispatchRecord, float]] = {}
    for _ in range(25):
        lane = data.draw(st.integers(0, 3))
        if lane not in at_work:
            share = reserve(run, budget, [MAKE], beside=data.draw(st.integers(0, 3)))
            if isinstance(share, list):
                at_work[lane] = (begun(run, reserved=share[0]), 0.0)
            else:
                assert at_work or isinstance(share, UsedUp), "it waits for nobody"
            continue
        record, before = at_work[lane]
        assert record.reserved is not None
        more = data.draw(st.floats(0, (record.reserved.cost_usd or 0) - before))
        paid += more
        assert paid <= 1 + 1e-9
        line = {"status": 200, "tokens": {"input": 1, "output": 1}, "cost_usd": before + more}
        log(run, record.dispatch, line)
        match data.draw(st.sampled_from(["goes on", "ends", "crash"])):
            case "ends":
                over(run, record, used(before + more))
                del at_work[lane]
            case "crash":
                run = Run.load(folder, driving=True)
                at_work.clear()
            case _:
                at_work[lane] = (record, before + more)


def test_what_is_not_known_is_said_once() -> None:
    unknown = ("001", "002")
    assert str(Spent(2, 2, unpriced=unknown, uncounted=unknown)) == "2 dispatches, cost and tokens not known"
    some = Spent(2, 2, cost_usd=1.0, unpriced=("001",), uncounted=unknown)
    assert str(some) == "2 dispatches, at least 1.0000 USD, 1 of unknown cost, at least 0 tokens, 2 not counted"
