"""Answers what is asked again and again (`runs`, `show`, `redfirst` alone) without loading the command line.

The parser and what it validates with take longer than these answers. Only the plainest words are taken; anything else,
and whatever goes wrong, is left to the whole program, which does the same again and has the words for it. What was
printed is kept with what it was read from: as long as that is the same, nothing else is loaded.
"""

from __future__ import annotations

import gc
import os
import sys
import time

from pipeline.service.text_cache import TYPE_CHECKING, keep_text, kept_text

if TYPE_CHECKING:
    from typing import NoReturn

    from pipeline.git import Repository

    Key = tuple[object, ...]

_MOST_ANSWERS = 100
_COMPLETING = "_REDFIRST_COMPLETE"
"""A shell that completes a command line starts the program without words."""
_OF_A_SHELL = ("_", "OLDPWD", "SHLVL")
"""Variables that a shell changes with each command, and that nothing here is told by."""


def key_of(words: list[str]) -> Key | None:
    """Return what the answer to a command line depends on beside files; None where it is not answered here."""
    match words[:-1] if words[-1:] == ["--json"] else words:
        case [] if _COMPLETING not in os.environ:
            pass
        case ["runs"] | ["issue", "ready"]:
            pass
        case ["show", *names] if words[-1] != "--json" and len(names) <= 1 and not "".join(names).startswith("-"):
            pass
        case _:
            return None
    told = sorted(item for item in os.environ.items() if item[0] not in _OF_A_SHELL)
    try:
        here = os.getcwd()  # noqa: PTH109  (no pathlib)
        return (words, here, told, *(_columns(stream.fileno()) for stream in (sys.stdout, sys.stderr)))
    except (OSError, ValueError, AttributeError):  # the folder is gone, or a stream is closed
        return None


def print_kept(key: Key) -> bool:
    """Print the answer that is kept, if any."""
    kept = kept_text("answers", key)
    if kept is None or kept.count("\0") != 1:
        return False
    _print(*kept.split("\0"))
    return True


def answered(words: list[str], key: Key) -> bool:
    """Return whether the words of a command line, which have a key, were answered here."""
    began = time.time_ns()
    gc.disable()  # the process ends in a moment
    try:
        from pathlib import Path  # noqa: PLC0415  (not for an answer that is kept)

        from pipeline.git import Repository  # noqa: PLC0415  (the same)

        repository = Repository.find(Path.cwd())
        match words:
            case ["issue", "ready", *as_json]:
                told, files, stays_s = _issue_ready(repository, as_json=bool(as_json))
            case ["runs", *as_json]:
                told, files, stays_s = _runs(repository, as_json=bool(as_json))
            case [] | ["--json"]:
                told, files, stays_s = _standing(repository, as_json=bool(words))
            case _:
                told, files, stays_s = _show(repository, next(iter(words[1:]), None))
    except KeyboardInterrupt as error:
        _end(error)
    except Exception:  # noqa: BLE001  (the whole program finds the words)
        gc.enable()
        return False
    _print(*told)
    try:
        _keep(key, told, files, repository, began, stays_s)
    except (Exception, KeyboardInterrupt):  # noqa: BLE001  (it is told already)
        return True
    return True


def _keep(
    key: Key, told: tuple[str, str], files: list[str], repository: Repository, began: int, stays_s: float
) -> None:
    if not stays_s or "\0" in "".join(told):
        return
    from pipeline.service.files_read import files_read  # noqa: PLC0415  (not for an answer that is kept)

    read, locks = files_read(repository)
    times = (began / 1e9, began / 1e9 + stays_s)
    keep_text(
        "answers", key, "\0".join(told), [*files, *read], began=began, most=_MOST_ANSWERS, locks=locks, times=times
    )


def _print(out: str, err: str) -> None:
    """Print an answer; what fails now is not left to the whole program, which would print it a second time."""
    try:
        for text, stream in ((out, sys.stdout), (err, sys.stderr)):
            if text:
                print(text, file=stream, flush=True)  # `terminal.echo` would load what makes texts
    except (OSError, KeyboardInterrupt) as error:
        _end(error)


def _columns(handle: int) -> int | None:
    """Return the width of a terminal, None where it is none."""
    return os.get_terminal_size(handle).columns if os.isatty(handle) else None


def _end(error: BaseException) -> NoReturn:
    """End as the whole program does: quietly where the reader has gone, with one line where it was interrupted."""
    from pipeline.cli.errors import run_guarded, wants_json  # noqa: PLC0415  (hardly ever needed)

    def fail() -> NoReturn:
        raise error

    sys.exit(run_guarded(fail, json=wants_json(sys.argv[1:])))


def _runs(repository: Repository, *, as_json: bool) -> tuple[tuple[str, str], list[str], float]:
    from pipeline.cli.runs_text import MOST_ENDED, document_text, runs_text, stays_s  # noqa: PLC0415  (its own)
    from pipeline.cli.text import fitted, terminal_width  # noqa: PLC0415  (the same)
    from pipeline.service.run_list import list_runs, newest_runs, with_removed  # noqa: PLC0415  (the same)

    if as_json:
        return (document_text(with_removed(repository, list_runs(repository))), ""), [], 0  # it has ages in seconds
    document, rest = newest_runs(repository, MOST_ENDED)
    document = with_removed(repository, document, MOST_ENDED)
    alright = all(line.problem is None for line in document.runs)
    text = fitted(runs_text(document, terminal_width(sys.stdout), rest))
    return (text, ""), [], stays_s(document) if alright else 0


def _standing(repository: Repository, *, as_json: bool) -> tuple[tuple[str, str], list[str], float]:
    from pipeline.cli.runs_text import stays_s  # noqa: PLC0415  (its own)
    from pipeline.cli.standing import standing_document, standing_json, standing_text  # noqa: PLC0415  (the same)
    from pipeline.cli.text import fitted  # noqa: PLC0415  (the same)
    from pipeline.service.issue_records import FOLDER  # noqa: PLC0415  (the same)
    from pipeline.service.standing import standing  # noqa: PLC0415  (the same)
    from pipeline.service.text_cache import below  # noqa: PLC0415  (the same)

    found = standing(repository)
    document = standing_document(repository, found)
    text = standing_json(document) if as_json else fitted(standing_text(document))
    alright = all(line.problem is None for line in found.runs.runs)
    files = [*below(str(repository.common_dir / "refs")), *below(str(repository.worktree / FOLDER))]
    return (text, ""), files, stays_s(found.runs) if alright else 0


def _issue_ready(repository: Repository, *, as_json: bool) -> tuple[tuple[str, str], list[str], float]:
    from pipeline.cli.issue_lists import left_out_text, ready_text  # noqa: PLC0415  (the same)
    from pipeline.service.issue_records import FOLDER, claims_of  # noqa: PLC0415  (the same)
    from pipeline.service.text_cache import below  # noqa: PLC0415  (the same)
    from todo import FolderSource, Tracker  # noqa: PLC0415  (the same)

    top = repository.worktree
    tracker = Tracker(FolderSource(top / FOLDER))
    listed, held = ready_text(tracker.ready(), claims_of(top), as_json=as_json)
    left_out = left_out_text(tracker.unreadable())
    return (listed, "\n".join(filter(None, (held, left_out)))), below(str(top / FOLDER)), float("inf")


def _show(repository: Repository, name: str | None) -> tuple[tuple[str, str], list[str], float]:
    from pipeline.cli.show_page import is_kept, page_files, page_of_run, page_text  # noqa: PLC0415  (the same)
    from pipeline.cli.text import fitted, terminal_width  # noqa: PLC0415  (the same)
    from pipeline.policy.characters import visible  # noqa: PLC0415  (the same)
    from pipeline.runs.roster import Roster  # noqa: PLC0415  (the same)
    from pipeline.service.run_list import find, running_beside  # noqa: PLC0415  (the same)

    roster = Roster(repository)
    folder = find(roster, name)
    text = fitted(page_text(page_of_run(folder, roster), terminal_width(sys.stdout)))
    others = "\n".join(f"also running: {other}" for other in (running_beside(roster, folder) if name is None else ()))
    stays = is_kept(folder, roster) and not others
    return (text, fitted(visible(others), err=True)), page_files(folder, roster), float("inf") if stays else 0
