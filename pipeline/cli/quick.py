"""Answers what is asked again and again (`runs`, `issue ready`) without loading the command line.

The parser and what it validates with take longer than these answers. Only the plainest words are taken; anything else,
and whatever goes wrong, is left to the whole program, which does the same again and has the words for it.
"""

from __future__ import annotations

from pathlib import Path


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
            case _:
                return False
    except BrokenPipeError:
        raise
    except Exception:  # noqa: BLE001  (the whole program finds the words)
        return False
    return True


def _issue_ready(*, as_json: bool) -> None:
    from pipeline.cli.issue_lists import FOLDER, claims_of, print_ready  # noqa: PLC0415  (the same)
    from pipeline.git import Repository  # noqa: PLC0415  (the same)
    from todo import FolderSource, Tracker  # noqa: PLC0415  (the same)

    top = Repository.find(Path.cwd()).worktree
    print_ready(Tracker(FolderSource(top / FOLDER)).ready(), claims_of(top), as_json=as_json)
