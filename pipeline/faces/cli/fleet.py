"""`redfirst fleet`: several machines over one queue and one hub (docs/how-to/fleet.md, several-machines.md)."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.characters import visible
from pipeline.errors import UserError
from pipeline.faces.cli.arguments import AgentFlags, AsDocument, AsDocumentBesideProgress, ValueFlags
from pipeline.faces.cli.doctor import check_lines
from pipeline.faces.cli.text import columned, print_result, say, terminal_width, to_the_second
from pipeline.outcomes import Reason
from pipeline.repo import Repository

if TYPE_CHECKING:
    from pipeline.app import fleet as service

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Let several machines work on one queue, and share runs."
)


@app.command()
def init(as_document: AsDocument = False) -> None:
    """Make the tables of the queue in the database that your configuration names.

    Tables that are there stay as they are.

    Examples:
      redfirst fleet init

      redfirst fleet init --json
    """
    from pipeline.app.fleet import begin_fleet

    print_result(begin_fleet(os.environ), init_text, as_document=as_document)


@app.command()
def status(as_document: AsDocument = False) -> None:
    """Show the orders of this repository, the workers of all machines, and the slots.

    Examples:
      redfirst fleet status

      redfirst fleet status --json
    """
    from pipeline.app.fleet import fleet_status

    print_result(fleet_status(Repository.find(Path.cwd()), os.environ), status_text, as_document=as_document)


@app.command()
def doctor(as_document: AsDocument = False) -> None:
    """Check whether this machine can work in its fleet, and what of the fleet a person should look at.

    A ref is made at the hub and removed again, since a run has to push there. The exit code is 2 when a check fails.

    Examples:
      redfirst fleet doctor

      redfirst fleet doctor --json
    """
    from pipeline.app.fleet import fleet_doctor

    document = fleet_doctor(Repository.find(Path.cwd()), os.environ)
    print_result(document, doctor_text, as_document=as_document)
    if not document.ok:
        raise typer.Exit(2)


def doctor_text(document: service.FleetDoctorDocument) -> str:
    """Return the checks, in lines."""
    return "\n".join(check_lines([(one.id, one) for one in document.checks], terminal_width(sys.stdout)))


def init_text(document: service.FleetInitDocument) -> str:
    """Return what was made, in lines."""
    made = [f"made the table {name}" for name in document.made] or ["All tables are there. Nothing was changed."]
    return "\n".join([*made, f"Orders of this hub are those of {document.repository}."])


def status_text(document: service.FleetDocument) -> str:
    """Return how the fleet stands, in lines."""
    counts = ", ".join(f"{count} {state}" for state, count in document.orders.items()) or "none"
    lines = [f"{document.repository}, by way of {document.hub}", f"orders: {counts}"]
    lines += [_worker(one) for one in document.workers] or ["No worker is connected. Start one: redfirst work"]
    lines += [f"slots {one.kind}: {one.free} of {one.most} free" for one in document.slots]
    return "\n".join(visible(line) for line in lines)


def _worker(one: service.FleetWorker) -> str:
    where = f"{one.machine} ({one.address})" if one.address else one.machine
    said = f", silent for {one.silent_s:.0f} s: its orders are free for others" if one.stalled else ""
    return f"worker {one.pid} on {where}{said}"


@app.command()
def runs(as_document: AsDocument = False) -> None:
    """List the runs that the machines keep at the hub, the one that was written last first.

    Examples:
      redfirst fleet runs

      redfirst fleet runs --json
    """
    from pipeline.app import fleet as service

    print_result(service.runs(Repository.find(Path.cwd()), os.environ), _runs_text, as_document=as_document)


def _runs_text(document: service.FleetRunsDocument) -> str:
    rows = [(visible(one.run), _run_text(one)) for one in document.runs]
    none = f"The hub {visible(document.hub)} has no run."
    lines = columned(rows, terminal_width(sys.stdout), indent=0) if rows else [none]
    return "\n".join([*lines, *map(visible, document.unreadable)])


def _run_text(run: service.FleetRun) -> str:
    how = run.state if run.state is not None else f"over: {visible(run.outcome or 'it cannot be read')}"
    where = f"last written by {visible(run.host)} at {to_the_second(run.last_at)}, line {run.lines}, epoch {run.epoch}"
    return f"{how}, {where}{', has a folder here' if run.here else ''}"


@app.command()
def take(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run of the hub, or its issue.", show_default=False)],
    resume: Annotated[bool, typer.Option("--resume", help="Go on with it at once, as `redfirst resume` does.")] = False,
    agent: AgentFlags = None,
    values: ValueFlags = None,
    as_document: AsDocumentBesideProgress = False,
) -> None:
    """Bring a run of another machine here, as its last checkpoint has it.

    Then `resume` goes on with it. The machine that had it is refused from your first step on, and publishes nothing.

    Examples:
      redfirst fleet take run-GAL-39

      cd ../project-gal-39 && redfirst resume run-GAL-39

      redfirst fleet take run-GAL-39 --resume
    """
    here = Repository.find(Path.cwd())
    if not resume and (agent or values):
        raise UserError("--agent and --set are for the driver: give them with --resume.", Reason.USAGE)
    from pipeline.app import fleet as service

    document = service.take(here, os.environ, run, say)
    if not resume:
        print_result(document, _taken_text, as_document=as_document)
        return
    from pipeline.app.start import Resumption, go_on
    from pipeline.faces.cli.run_actions import drive, going_on

    folder = Path(document.folder)
    there = Repository.find(folder.parents[1])
    options = replace(going_on(agent, values), environ=dict(os.environ))
    act = partial(go_on, there, folder, options, Resumption())
    drive(act, here, there.worktree, folder.name, as_document=as_document)


def _taken_text(document: service.TakenDocument) -> str:
    lines = [f"{visible(document.run)} is in {visible(document.folder)}, on branch {visible(document.branch)}"]
    if document.set_aside is not None:
        lines.append(f"what was here is kept in {visible(document.set_aside)}")
    return "\n".join([*lines, f"next: {visible(document.next)}"])
