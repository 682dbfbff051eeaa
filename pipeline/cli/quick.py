"""Answers what is asked again and again (`runs`, `show`, `issue ready`) without loading the command line.

The parser and what it validates with take longer than these answers. Only the plainest words are taken; anything else,
and whatever goes wrong, is left to the whole program, which does the same again and has the words for it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn


def answered(words: list[str]) -> bool:
    """Return whether the words of a command line were answered here."""
    command, as_document = (words[:-1], True) if words[-1:] == ["--json"] else (words, False)
    try:
        match command:
            case ["runs"]:
                from pipeline.cli.runs_text import print_runs  # noqa: PLC0415  (each needs its own)

                print_runs(as_document=as_document)
            case ["issue", "ready"]:
                _issue_ready(as_json=as_document)
            case ["show", *names] if not as_document and len(names) <= 1 and not "".join(names).startswith("-"):
                _show(next(iter(names), None))
            case _:
                return False
    except (BrokenPipeError, KeyboardInterrupt) as error:
        _end(error)
    except Exception as error:  # noqa: BLE001  (the whole program finds the words, or tells how it ended)
        from pipeline.terminal import has_said  # noqa: PLC0415  (the same)

        if has_said():  # a second time would be printed, too
            _end(error)
        return False
    return True


def _end(error: BaseException) -> NoReturn:
    """End as the whole program does: quietly where the reader has gone, with one line where it was interrupted."""
    from pipeline.cli.errors import run_guarded, wants_json  # noqa: PLC0415  (hardly ever needed)

    def fail() -> NoReturn:
        raise error

    sys.exit(run_guarded(fail, json=wants_json(sys.argv[1:])))


def _issue_ready(*, as_json: bool) -> None:
    from pipeline.cli.issue_lists import FOLDER, claims_of, print_ready  # noqa: PLC0415  (the same)
    from pipeline.git import Repository  # noqa: PLC0415  (the same)
    from todo import FolderSource, Tracker  # noqa: PLC0415  (the same)

    top = Repository.find(Path.cwd()).worktree
    print_ready(Tracker(FolderSource(top / FOLDER)).ready(), claims_of(top), as_json=as_json)


def _show(name: str | None) -> None:
    from pipeline.cli.show_page import page_of_run, page_text  # noqa: PLC0415  (the same)
    from pipeline.cli.text import print_text, terminal_width  # noqa: PLC0415  (the same)
    from pipeline.git import Repository  # noqa: PLC0415  (the same)
    from pipeline.runs.roster import Roster  # noqa: PLC0415  (the same)
    from pipeline.service.run_list import find  # noqa: PLC0415  (the same)

    roster = Roster(Repository.find(Path.cwd()))
    print_text(page_text(page_of_run(find(roster, name), roster), terminal_width(sys.stdout)))
