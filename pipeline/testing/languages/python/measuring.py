"""Measures Python tests: runs pytest in the box, and again after a test that killed it.

The command line keeps the project's own configuration and takes away only what would stop early, reorder, parallelise
or measure coverage; the plugin's records are the result.
"""

from __future__ import annotations

import ctypes
import json
import re
import secrets
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from pipeline.process import Command, Completed, Mount
from pipeline.sandbox.boxes.box_folder import BoxFolder
from pipeline.scratch import scratch_folder
from pipeline.testing.languages.environments import devshell
from pipeline.testing.languages.environments.installed import editable_mounts, editable_paths
from pipeline.testing.languages.protocol import FoundInputs, Measurement, Selection, View
from pipeline.testing.languages.python import bytecode
from pipeline.testing.languages.python.bytecode import Place, lay_out
from pipeline.testing.languages.python.environment import PYTEST
from pipeline.testing.languages.python.records import Finished, Item, Session, observe, read_session
from pipeline.testing.languages.runners import durations
from pipeline.testing.languages.runners.sessions import TAIL, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.judge.evidence.observation import Observation


_MAX_CRASHES: Final = 3
_CALMING: Final[Mapping[str, tuple[str, ...]]] = {
    "xdist": ("-n", "0"),
    "pytest_cov": ("--no-cov",),
    "randomly": ("--randomly-dont-reorganize", "--randomly-seed=1"),
    "random_order": ("--random-order-bucket=none",),
    "rerunfailures": ("--reruns=0",),
    "pytest-retry": ("--retries=0",),
}
"""Options that switch off plugins which split, reorder or repeat a run, by plugin. An option is given only where it is
known: `-p no:xdist` among a project's own makes an error of `-n`."""


async def run_tests(asked: Measurement) -> Observation:
    """Run the selected tests and return the observation.

    Everything is collected in any case, so the ids of the observation are complete. After a test that killed the
    process the rest is run in a new one, a few times.

    Raises:
        BoxError: the box did not work.
    """
    sessions: list[Session] = []
    done: set[str] = set()
    output, cache = "", asked.cache
    deadline = anyio.current_time() + asked.timeout_s
    with scratch_folder("tests") as place:
        program = _lay_out_program(place)
        folders = _places(asked)
        filled: BoxFolder | None = None
        while True:
            nonce = secrets.token_hex(16)
            folder = _folder_for(place, len(sessions), asked, folders)
            filled = filled or folder
            redacted = {str(folder.path): "<scratch>", str(asked.view.host): "."}
            request = {**_request(asked, done), "nonce": nonce, "redact": redacted}
            completed = await asked.box.run(
                replace(
                    _command(asked, program, folder),
                    request=json.dumps(request).encode(),
                    timeout_s=max(1.0, deadline - anyio.current_time()),
                )
            )
            output = _tail(completed, asked.view)
            sessions.append(
                read_session(completed.answer, nonce, exit_code=completed.exit_code, timed_out=completed.timed_out)
            )
            keep_found(folder, asked.found)
            crashed = sessions[-1].unfinished
            if crashed is None or completed.timed_out or len(sessions) > _MAX_CRASHES:
                break
            done |= {record.id for record in sessions[-1].records if isinstance(record, Finished)} | {crashed}
        if cache is not None and cache.warm:
            filled.keep(cache.folder, inside=COMPILED)
            bytecode.keep(cache.folder, folders, [mount.target for mount in asked.env.mounts])
            durations.write(cache.folder, _seconds_by_file(sessions))
    chosen = sorted((asked.selection and (asked.selection.ids or asked.selection.files)) or ())
    return observe(sessions, command=(*asked.env.command, *shortened(chosen)), tail=output)


async def check_types(asked: Measurement) -> Observation:
    """Return the files that cannot be collected: Python has no type check of its own, and this imports every module.

    Raises:
        BoxError: the box did not work.
    """
    return await run_tests(replace(asked, selection=Selection.nothing()))


def _command(asked: Measurement, program: Path, folder: BoxFolder) -> Command:
    view, env, cache = asked.view, asked.env, asked.cache
    starts = (at for at, word in enumerate(env.command) if at and (word == "-m" or Path(word).name in PYTEST))
    at = next(starts, len(env.command))
    argv = (
        *same_addresses(),
        *env.command[:at],
        str(program / _START),
        *env.command[at:],
        "-p",
        PLUGIN,
        f"--rootdir={view.workspace}",
        "--continue-on-collection-errors",
        "--maxfail=0",
        "-o",
        f"cache_dir={folder.path / 'pytest-cache'}",
        *(f"--ignore={view.workspace / folder}" for folder in asked.elsewhere),
    )
    caches = () if cache is None or cache.warm else (Mount(cache.folder, cache.folder),)
    # what is tested could leave compiled code for tests that are imported after it
    compiled = () if cache is not None and cache.warm else (Mount(folder.path / COMPILED, folder.path / COMPILED),)
    paths = editable_paths(env, view, isolated=asked.box.maps_paths)
    return Command(
        argv=argv,
        cwd=view.workspace,
        mounts=(
            view.mount,
            *editable_mounts(env, view),
            *env.mounts,
            Mount(program, program),
            folder.mount(folder.path),
            *compiled,
            *caches,
        ),
        env={
            **env.variables,
            "PATH": devshell.box_path(env.prefix, env.variables),
            "PYTHONPATH": ":".join(map(str, paths)),
            "PYTHONPYCACHEPREFIX": str(folder.path / COMPILED),
            "PYTHONHASHSEED": "0",
            "NO_COLOR": "1",  # not --color, which is an unknown option under `-p no:terminal`
            "PYTHONNOUSERSITE": "1",
            "COVERAGE_FILE": str(folder.path / "coverage"),
            "HYPOTHESIS_STORAGE_DIRECTORY": str(folder.path / STORAGE),
            "PYTEST_DEBUG_TEMPROOT": str(folder.path / TEMPORARY),
        },
    )


@cache
def same_addresses() -> tuple[str, ...]:
    """Return the argv prefix under which objects have the same addresses in each run, where the kernel allows it.

    What has no value of its own is hashed by its address. So the order of a set is, and with it the ids of cases.
    """
    program, fixed = Path("/usr/bin/setarch"), 0x0040000
    if not program.exists():
        return ()
    personality = ctypes.CDLL(None).personality  # of this thread alone
    before = personality(0xFFFFFFFF)
    allowed = personality(before | fixed) != -1
    personality(before)
    return (str(program), "-R") if allowed else ()


def _request(asked: Measurement, done: set[str]) -> dict[str, object]:
    """Return the request for the plugin, but for what one process adds; *done* tests ran in an earlier process."""
    chosen, roots, isolated = asked.selection or Selection(), asked.env.editable_roots, asked.box.maps_paths
    inside = [(str(root.path), "" if root.relative == "." else root.relative) for root in roots]
    return {
        "roots": [(str(asked.view.workspace), ""), *(inside if isolated else ())],
        "checkouts": [] if isolated else [str(root.path) for root in roots],
        "ids": None if chosen.ids is None else sorted(chosen.ids),
        "files": None if chosen.files is None else sorted(chosen.files),
        "elsewhere": list(asked.elsewhere),
        "done": sorted(done),
        "trace": asked.trace,
        "per_test_s": asked.per_test_timeout_s,
        "calming": [flags for plugin, flags in _CALMING.items() if plugin in asked.env.plugins],
    }


def _places(asked: Measurement) -> tuple[bytecode.Place, ...]:
    """Return the folders of the project's own sources. Our plugin is not among them: it is compiled as it is installed.

    What the cache holds comes from a run in which tests could write there, and the plugin is not for them to replace.
    """
    files = asked.view.files
    return (
        bytecode.Place(asked.view.workspace, files),
        *(bytecode.Place(root.path, files.below(root.relative)) for root in asked.env.editable_roots),
    )


def _seconds_by_file(sessions: Sequence[Session]) -> dict[str, float]:
    """Return the seconds that the tests of each file took; no evidence, since they vary."""
    everything = [record for session in sessions for record in session.records]
    paths = {record.id: record.path for record in everything if isinstance(record, Item)}
    seconds: dict[str, float] = {}
    for record in everything:
        if isinstance(record, Finished) and record.id in paths:
            seconds[paths[record.id]] = seconds.get(paths[record.id], 0.0) + record.seconds
    return seconds


def _tail(completed: Completed, view: View) -> str:
    text = (completed.stdout + completed.stderr).decode("utf-8", "replace")
    return text.replace(f"{view.workspace}/", "")[-TAIL:]


PLUGIN: Final = "redfirst_evidence"
"""The name under which the plugin is loaded."""
COMPILED: Final = "pycache"
TEMPORARY: Final = "temproot"
"""The folder that a process has before it starts."""
STORAGE: Final = "hypothesis"
"""The folder of hypothesis, with its database of examples."""
EXAMPLES: Final = f"{STORAGE}/examples"
_HASHED: Final = re.compile(r"[0-9a-f]{16}")
_MOST_EXAMPLES: Final = 10_000
_MOST_BYTES: Final = 16 << 20
_START: Final = "start.py"


def _lay_out_program(place: Path) -> Path:
    """Create the folder with our program, which is read-only for tests."""
    program = place / "program"
    program.mkdir()
    # in a folder of their own: what lies beside the plugin in the package would be importable, too
    here = Path(__file__)
    shutil.copytree(here.with_name("plugin"), program / PLUGIN)
    shutil.copyfile(here.with_name(_START), program / _START)
    return program


def _folder_for(place: Path, number: int, asked: Measurement, folders: Sequence[Place]) -> BoxFolder:
    """Return a new folder for a process, with the compiled code that it may use, and the inputs that were found.

    New for each process, for the tests can write there: what one has left behind, the next would load.
    """
    made = BoxFolder.made(place, f"process-{number}")
    made.add(TEMPORARY)
    compiled = made.add(COMPILED)
    if asked.cache is not None and not asked.cache.warm:  # what is being filled is not sorted out yet
        lay_out(asked.cache.folder, folders, compiled)
    if asked.found is not None:
        made.fill(asked.found.folder)
    return made


def keep_found(folder: BoxFolder, found: FoundInputs | None) -> None:
    """Keep the counterexamples that hypothesis found, files of bytes below two hashed names, and nothing else.

    Raises:
        BoxError: another folder has come into its place.
    """
    if found is not None and found.keeps:
        kept = found.folder / EXAMPLES
        folder.collect(kept, EXAMPLES, (_HASHED, _HASHED), entries=_MOST_EXAMPLES, size=_MOST_BYTES)
