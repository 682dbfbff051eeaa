"""Runs tests that an agent names by our ids, with each language's runner in the folder of its project.

This file is copied into no project and imports nothing of ours: in the box of an agent it runs alone (`python -I -S`).
What it prints and returns is for the agent; no evidence comes from here. Its first argument says in JSON which runners
there are, the others are ids, test files, or parts of names; without any, every runner runs all of its tests.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any, Final

NO_RUNNER: Final = 2
"""The exit code for a selector that belongs to no runner."""

_LABEL: Final = re.compile(r"lib|doc|(bin|test|example)/[^:]+")
_GO_NAME: Final = re.compile(r"(Test|Benchmark|Fuzz|Example)\w*(/.*)?")


def share(runners: list[dict[str, Any]], selectors: list[str]) -> tuple[list[list[str]], list[str]]:
    """Return the selectors of each runner, relative to its folder, and those that belong to none.

    Args:
        runners: Each with `name`, `folder` (empty for the top), `mark` (what its ids have in front), `sources`.
        selectors: Ids, test files, or parts of names.
    """
    shares: list[list[str]] = [[] for _ in runners]
    nobodys: list[str] = []
    for selector in selectors:
        fitting = [(at, word) for at, runner in enumerate(runners) if (word := inside(runner, selector)) is not None]
        if len(runners) == 1 and not fitting:
            fitting = [(0, selector)]
        if fitting:
            at, word = max(fitting, key=lambda fit: len(runners[fit[0]]["folder"]))  # the nearest one
            shares[at].append(word)
        else:
            nobodys.append(selector)
    return shares, nobodys


def inside(runner: dict[str, Any], selector: str) -> str | None:
    """Return the runner's own name for a selector, None if it is another runner's."""
    for mark in (runner["mark"], f"{runner['folder']}/"):
        if runner["folder"] and selector.startswith(mark):
            return selector[len(mark) :]
    if runner["folder"]:
        return None
    head, _, name = selector.partition("::")
    if head.endswith(tuple(runner["sources"])):
        return selector
    label = name.partition("::")[0]
    if runner["name"] == "cargo" and _LABEL.fullmatch(label):
        return selector
    return selector if runner["name"] == "go" and _GO_NAME.fullmatch(name) else None


def commands(runner: dict[str, Any], chosen: list[str]) -> list[list[str]]:
    """Return the commands that run these tests of one runner; all tests if none is chosen."""
    argv: list[str] = runner["argv"]
    if not chosen:
        return [argv]
    match runner["name"]:
        case "cargo":
            return _cargo(argv, chosen)
        case "go":
            return _go(argv, chosen)
        case "node":  # its ids end in names that no runner takes as they are; files it takes
            return [[*argv, *dict.fromkeys(entry.partition("::")[0] for entry in chosen)]]
        case _:
            return [[*argv, *chosen]]


def _cargo(argv: list[str], chosen: list[str]) -> list[list[str]]:
    """Return a command for each target with its names: `package::target::name`, a file, or part of a name."""
    at = argv.index("--") if "--" in argv else len(argv)
    groups: dict[tuple[str, ...], list[str]] = {}
    for entry in chosen:
        package, label, name = (*entry.split("::", 2), "", "")[:3]
        if _LABEL.fullmatch(label) and name:
            kind, _, target = label.partition("/")
            groups.setdefault(("-p", package, f"--{kind}", *filter(None, (target,))), []).append(name)
        elif entry.endswith(".rs"):
            folder, _, file = f"/{entry}".rpartition("/")
            target = ("--test", file.removesuffix(".rs")) if folder.endswith("/tests") else ()
            groups.setdefault(target, [])
        else:
            groups.setdefault(("",), []).append(entry)
    found: list[list[str]] = []
    for target, names in groups.items():
        words = [word for word in target if word]
        exact = ["--exact"] if words and "--doc" not in words and names else []
        shown = [name.split("::", 1)[-1].partition("#")[0] for name in names] if "--doc" in words else names
        found.append([*argv[:at], *words, *(["--", *argv[at + 1 :], *exact, *shown] if shown or argv[at:] else [])])
    return found


def _go(argv: list[str], chosen: list[str]) -> list[list[str]]:
    """Return a command for each folder with the names of its tests; a subtest runs with its whole test."""
    groups: dict[str, list[str]] = {}
    for entry in chosen:
        head, colons, name = entry.partition("::")
        folder = head.rpartition("/")[0] if head.endswith(".go") else head if colons else "..."
        groups.setdefault(folder or ".", []).append((name or ("" if head.endswith(".go") else head)).partition("/")[0])
    found: list[list[str]] = []
    for folder, names in groups.items():
        wanted = "|".join(dict.fromkeys(re.escape(name) for name in names if name))
        pattern = ["-run", f"^({wanted})$" if folder != "..." else wanted] if wanted and all(names) else []
        found.append([*argv, *pattern, f"./{folder}" if folder != "." else "."])
    return found


def main(argv: list[str]) -> int:
    """Run the chosen tests, one runner after the other; return the first exit code that is not 0."""
    runners: list[dict[str, Any]] = json.loads(argv[0])
    selectors = argv[1:]
    shares, nobodys = share(runners, selectors)
    if nobodys:
        known = ", ".join(runner["name"] for runner in runners)
        sys.stdout.write(f"no test runner of this project ({known}) has {', '.join(nobodys)}\n")
        return NO_RUNNER
    code = 0
    for runner, chosen in zip(runners, shares, strict=True):
        if selectors and not chosen:
            continue
        for command in commands(runner, chosen):
            where = f" (in {runner['folder']})" if runner["folder"] else ""
            sys.stdout.write(f"$ {' '.join(command)}{where}\n")
            sys.stdout.flush()
            done = subprocess.run(command, cwd=runner["folder"] or ".", stdin=subprocess.DEVNULL, check=False)
            code = code or done.returncode
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
