"""Dispatches side by side: what the driver writes meanwhile is no escape, and what one of them does ends all."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, Final

import anyio
import pytest
from attacks.world import make_box
from runs.real import alone, begin, git, make_repository, tree_with

from pipeline.agents.dispatch.dispatcher import Dispatcher
from pipeline.agents.dispatch.request import InRun, Request
from pipeline.agents.dispatch.roles import load_roles, load_templates
from pipeline.config.model import Config
from pipeline.run.checkout import PrivateCheckout
from pipeline.run.info import DispatchRecord
from pipeline.run.journal_kinds import ClaimTaken
from pipeline.run.run_ref import drop_publication, keep, keep_publication
from pipeline.run.store import run_ref
from pipeline.sandbox.escapes import Fingerprint
from pipeline.vocabulary import Role, Signal

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.repo import Repository
    from pipeline.run.info import DispatchResult
    from pipeline.run.run import Run
    from pipeline.sandbox.escapes import Escape

pytestmark = pytest.mark.slow

AT_A_TIME: Final = 4
REPORTS: Final = {
    Role.CHECK: '{"verdict": "ACCEPTABLE"}',
    Role.SIMPLIFY: '{"verdict": "JUSTIFIED COMPLEXITY"}',
}


class Place:
    """A run, and a driver that writes as lanes do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.repository: Repository = make_repository(folder / "project")
        self.run: Run = begin(self.repository, "run-GAL-1")
        self.run.write_artifact("evidence/baseline.json", "{}\n")
        self.checkout = PrivateCheckout(self.repository, folder / "state")
        self.checkout.open(self.run.info.start_tree)
        self.tree = self.run.info.start_tree
        self.number = 0

    def write(self, chance: random.Random) -> None:
        """Do one of the things that a driver does while others are at work."""
        self.number += 1
        match chance.randrange(5):
            case 0:
                self.run.write_artifact("evidence/baseline.json", f"{self.number}\n")
            case 1:
                self.run.write_artifact(f"evidence/green-{self.number}.md", "GREEN\n")
            case 2:
                self.run.journal.append(ClaimTaken(issue=f"GAL-{self.number}"))
            case 3:
                self.tree = tree_with(self.repository, self.tree, {"app.py": f"{self.number}\n"})
                keep_publication(self.repository, self.run, self.run.info.start_commit)
                drop_publication(self.repository, self.run)
            case _:
                keep(self.repository, self.run)

    def begin(self) -> Fingerprint:
        return Fingerprint.take(self.repository, self.run.written)

    def end(self, before: Fingerprint) -> Escape | None:
        return before.differs(self.repository, self.checkout)


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:  # pyright: ignore[reportUnusedFunction]
    alone(monkeypatch, tmp_path / "home")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("dispatches", [20, pytest.param(1000, marks=pytest.mark.timeout(3600))])
@pytest.mark.broad(but_first=1)
def test_what_other_lanes_write_is_no_escape(place: Place, dispatches: int) -> None:
    """Acceptance check 27."""
    chance = random.Random(dispatches)  # noqa: S311  (a schedule)
    at_work: list[Fingerprint] = []
    begun = ended = 0
    while ended < dispatches:
        if begun < dispatches and len(at_work) < AT_A_TIME and chance.random() < 0.6:
            at_work.append(place.begin())
            begun += 1
        elif at_work:
            assert place.end(at_work.pop(chance.randrange(len(at_work)))) is None
            ended += 1
        place.write(chance)


def test_a_write_of_ours_hides_nobody_elses(place: Place) -> None:
    name = "evidence/task-1.json"
    path = place.run.folder / name
    before = place.begin()
    place.run.write_artifact(name, "RED\n")
    path.write_text("GREEN\n")
    other = place.begin()
    found = [place.end(before), place.end(other)]
    assert found[0] is not None, "the record is not the one that we wrote"
    assert [part.path for part in found[0].parts] == [str(path)]
    place.run.write_artifact("evidence/task-2.json", "RED\n")
    path.unlink()
    gone = place.end(other)
    assert gone is not None
    assert [part.path for part in gone.parts] == [str(path)]


def test_a_ref_that_we_moved_and_somebody_else_moved_again_is_an_escape(place: Place) -> None:
    before = place.begin()
    keep(place.repository, place.run)
    assert place.end(before) is None
    ref = run_ref(place.repository, place.run.info.run_id)
    git(place.repository.worktree, "update-ref", ref, "HEAD")
    escape = place.end(before)
    assert escape is not None
    assert [(part.part, part.path) for part in escape.parts] == [("refs of the run", ref)]


def test_a_line_of_the_journal_that_is_not_ours_is_an_escape(place: Place) -> None:
    before = place.begin()
    place.run.journal.append(ClaimTaken(issue="GAL-1"))
    assert place.end(before) is None
    with (place.run.folder / "journal.jsonl").open("a") as journal:
        journal.write('{"kind": "decision"}\n')
    escape = place.end(before)
    assert escape is not None
    assert "journal.jsonl" in escape.why


# --- real agents, without a box ----------------------------------------------------------------------------------


def dispatcher(place: Place, deeds: dict[Role, str]) -> Dispatcher:
    """Return a dispatcher whose agents do these things, in sh, and then answer."""
    box, why = make_box("none")
    assert box is not None, why
    agents: dict[str, object] = {"backend": "command"}
    for role, deed in deeds.items():
        script = f"{deed}\nprintf '%s' '{REPORTS[role]}' > \"$REDFIRST_REPORT\""
        agents[role.value] = {"backend": "command", "argv": ["sh", "-c", script]}
    return Dispatcher(
        run_id=place.run.info.run_id,
        issue=place.run.issue,
        run_folder=place.run.folder,
        repository=place.repository,
        checkout=place.checkout,
        config=Config.model_validate({"agents": agents}),
        box=box,
        roles=load_roles(),
        templates=load_templates(),
        search_path=os.environ["PATH"],
        written=place.run.written,
    )


def ask(place: Place, deeds: dict[Role, str], *, writes: int = 0) -> dict[Role, DispatchResult]:
    """Return what comes of asking all of them at once, while the driver writes."""
    asked = dispatcher(place, deeds)
    found: dict[Role, DispatchResult] = {}
    chance = random.Random(writes)  # noqa: S311  (a schedule)

    async def one(number: int, role: Role) -> None:
        record = DispatchRecord.model_validate(
            {
                "dispatch": f"{number:03}-review_plan-{role.value}",
                "number": number,
                "step": "review_plan",
                "visit": 1,
                "resumes": 0,
                "role": role,
                "kind": "review-plan",
                "question": None,
                "task": None,
                "attempt": 1,
                "reask": None,
                "base_tree": place.run.info.start_tree,
                "backend": "command",
            }
        )
        request = Request(role, "review-plan", place.run.info.start_tree)
        found[role] = await asked.dispatch(record, request, InRun("4"))

    async def all_of_them() -> None:
        async with anyio.create_task_group() as group:
            for number, role in enumerate(deeds, 1):
                group.start_soon(one, number, role)
            for _ in range(writes):
                place.write(chance)
                await anyio.lowlevel.checkpoint()

    anyio.run(all_of_them)
    return found


def test_agents_side_by_side_with_a_driver_that_writes_all_count(place: Place) -> None:
    found = ask(place, {Role.CHECK: ":", Role.SIMPLIFY: ":"}, writes=30)
    assert [result.signal for result in found.values()] == [None, None], [r.complaint for r in found.values()]


@pytest.mark.parametrize("escapes", [Role.CHECK, Role.SIMPLIFY])
@pytest.mark.broad(but_first=1)
def test_an_escape_by_one_of_two_names_the_path_and_ends_both(place: Place, escapes: Role) -> None:
    forged = place.run.folder / "evidence/task-1.json"
    other = next(role for role in REPORTS if role is not escapes)
    found = ask(place, {escapes: f"echo GREEN > {forged}", other: "sleep 300"}, writes=10)
    assert {result.signal for result in found.values()} == {Signal.ESCAPE}
    for result in found.values():
        assert "evidence/task-1.json" in (result.complaint or "")
        assert (result.gate, result.tree) == ("rejected", None)
