"""Dispatches in one process, as a run has them: for each line on stdin one, and its times as a line on stdout.

`agents_ours.py FOLDER` stands in the repository that `agents.py` made, with its configuration in the environment's home
folder; the run is kept in FOLDER, which goes away with the repository.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import anyio
import anyio.to_thread

from pipeline.agents.dispatch.dispatcher import Dispatcher
from pipeline.agents.dispatch.request import InRun, Request
from pipeline.agents.dispatch.roles import load_roles, load_templates
from pipeline.app.run_config import load_config
from pipeline.config.layers import Flags
from pipeline.judge.policy.rights import Action, Grant, TestScope
from pipeline.repo import Repository
from pipeline.run.checkout import PrivateCheckout
from pipeline.run.info import DispatchRecord
from pipeline.sandbox.boxes.box import open_box
from pipeline.vocabulary import Role


async def opened(repository: Repository, place: Path) -> Dispatcher:
    """Return what a driver has before its first dispatch."""
    tip = repository.resolve("HEAD")
    assert tip is not None
    config = load_config(repository, tip, Flags(), os.environ).config
    checkout = PrivateCheckout(repository, place / "state")
    checkout.open(repository.tree_of(tip))
    return Dispatcher(
        run_id="run-B-1",
        issue="B-1",
        run_folder=place / "run",
        repository=repository,
        checkout=checkout,
        config=config,
        box=await open_box(config.sandbox.value),
        roles=load_roles(),
        templates=load_templates(),
        search_path=os.environ["PATH"],
        environ=os.environ,
    )


async def dispatch(dispatcher: Dispatcher, number: int) -> dict[str, float]:
    """Return when one dispatch began and ended."""
    repository = dispatcher.repository
    tree = repository.tree_of("HEAD")
    grants = (Grant("calc.py", Action.MODIFY),)
    issue = repository.worktree / "TODO" / "B-1.md"
    request = Request(
        Role.MAKE, "implement", tree, artifacts={"task": [issue]}, grants=grants, tests=TestScope(files=())
    )
    record = DispatchRecord(
        dispatch=f"{number:03d}-implement-make",
        number=number,
        step="implement",
        visit=number,
        resumes=0,
        role=Role.MAKE,
        kind="implement",
        question=None,
        task="1",
        attempt=1,
        reask=None,
        base_tree=tree,
        backend=dispatcher.config.agent(Role.MAKE).backend.value,
    )
    began = time.monotonic()
    result = await dispatcher.dispatch(record, request, InRun("7", "The bench asks."))
    ended = time.monotonic()
    changed = [change.path for change in result.changes]
    assert (result.signal, result.gate, changed) == (None, "admitted", ["calc.py"]), result
    return {"began": began, "ended": ended}


async def serve(place: Path) -> None:
    dispatcher = await opened(Repository.find(Path.cwd()), place)
    print("ready", flush=True)
    number = 0
    while await anyio.to_thread.run_sync(sys.stdin.readline):
        number += 1
        print(json.dumps(await dispatch(dispatcher, number)), flush=True)


if __name__ == "__main__":
    anyio.run(serve, Path(sys.argv[1]))
