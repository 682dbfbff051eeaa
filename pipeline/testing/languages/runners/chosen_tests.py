"""Runs tests that an agent names by our ids, with each language's runner in the folder of its project.

This file is copied into no project: in the box of an agent it runs (`python -I -S`) with `evidence/written_ids.py`.
What it prints and returns is for the agent; no evidence comes from here. Its first argument says in JSON which runners
there are, the others are ids or the end of one, test files, or parts of names; without any, every runner runs all of
its tests. What names no file is looked up in what the runners list, since collecting takes time.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

NO_RUNNER: Final = 2
"""The exit code for a selector that belongs to no runner."""

_NOT_FOUND: Final = 4
"""The exit code of pytest for an id that it does not have."""
_IDS: Final = Path(__file__).parents[3] / "judge" / "evidence" / "written_ids.py"
_TARGET: Final = re.compile(r"^.*?\b(lib|doc|(bin|test|example)/[^:]+)::")
_PYTEST_ID: Final = re.compile(r"[^\s:][^:]*::.+")
_CARGO_NAME: Final = re.compile(r"(?P<name>\S.*): test")

_LABEL: Final = re.compile(r"lib|doc|(bin|test|example)/[^:]+")
_GO_NAME: Final = re.compile(r"(Test|Benchmark|Fuzz|Example)\w*(/.*)?")


@cache
def written_ids() -> Any:
    """Return the module that says which tests an id means; it lies in the box as this file does."""
    spec = spec_from_file_location("written_ids", _IDS)
    if spec is None or spec.loader is None:
        raise ImportError(str(_IDS))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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


def known(runner: dict[str, Any]) -> list[str]:
    """Return what a runner lists of its tests: pytest ids, cargo and go names; nothing where it cannot list them."""
    argv: list[str] = runner["argv"]
    at = argv.index("--") if "--" in argv else len(argv)
    asked, form = {
        # with a -q of the project's own a second one counts tests instead of naming them, and a -v takes one back
        "pytest": ([[*argv, "--collect-only", *more] for more in (["-q"], [], ["-qq"], ["-qqq"])], _PYTEST_ID),
        "cargo": ([[*argv[:at], "--", "--list"]], _CARGO_NAME),
        "go": ([[*argv, "-list", ".", "./..."]], _GO_NAME),
    }.get(runner["name"], ([], _PYTEST_ID))
    for command in asked:
        done = subprocess.run(
            command, cwd=runner["folder"] or ".", stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        lines = done.stdout.decode(errors="replace").splitlines()
        found = [match for line in lines if (match := form.fullmatch(line)) is not None]
        if found:
            return list(dict.fromkeys(match.groupdict().get("name") or match[0] for match in found))
    return []


def is_certain(runner: dict[str, Any], word: str) -> bool:
    """Return whether a runner's own name for a selector says where the test is: its file, folder or target."""
    head, _, name = word.partition("::")
    return Path(runner["folder"], head).exists() or bool(
        runner["name"] == "cargo" and _LABEL.fullmatch(name.partition("::")[0])
    )


def _listed_name(runner: dict[str, Any], word: str) -> str:
    """Return the name under which a runner lists a test, where it passes for a name that it does not have; else ""."""
    head, _, name = word.partition("::")
    if runner["name"] == "go":
        return name.partition("/")[0]
    label, _, own = name.partition("::")
    is_of_target = runner["name"] == "cargo" and label != "doc" and _LABEL.fullmatch(label) and not head.endswith(".rs")
    return own if is_of_target else ""


def looked_up(lists: list[list[str]], runners: list[dict[str, Any]], selector: str) -> tuple[int, str] | str:
    """Return the runner and its name of the one test that a selector is the end of; else what is wrong with it.

    Args:
        lists: What each runner lists.
        runners: The same as for `share`.
        selector: An id, or a part of one.
    """
    ids = written_ids()
    endings = {ending for runner in runners for ending in runner["sources"]}
    bare = _TARGET.sub("", selector)  # cargo lists no targets
    whole = [(at, entry) for at, entries in enumerate(lists) for entry in entries]
    marks = [runner["mark"] if runner["folder"] else "" for runner in runners]
    tests = {f"{marks[at]}{entry}": (at, entry) for at, entry in whole}
    functions = {name: _without_case(name) for name in tests}
    ending: list[str] = []
    for is_cargo, written in ((False, selector), (True, bare)):
        own = {n: f for n, f in functions.items() if (runners[tests[n][0]]["name"] == "cargo") == is_cargo}
        ending += ids.ending_in(written, own, endings)
    if len(ending) == 1:
        at, entry = next(tests[name] for name in tests if ending[0] in {name, functions[name]})
        return at, entry if ending[0] in tests else _without_case(entry)
    partly = next((at for at, entry in whole if selector in entry and runners[at]["name"] in {"cargo", "go"}), None)
    if partly is not None:
        return partly, selector
    if ending:
        return ids.several(selector, ending)
    return f"no test is called {selector}{_near(selector, functions.values())}"


def _without_case(entry: str) -> str:
    return re.sub(r"\[.*\]$", "", entry)


def _near(selector: str, names: Iterable[str]) -> str:
    close = written_ids().near(selector, dict.fromkeys(names))
    return f"; near it: {', '.join(close)}" if close else ""


def chosen_of(runners: list[dict[str, Any]], selectors: list[str]) -> tuple[list[list[str]], list[str]]:
    """Return the selectors of each runner as its own names, and what is wrong with those that belong to none."""
    if any(selector.startswith("-") for selector in selectors):  # options: what stands behind one is no id
        given, nobodys = share(runners, selectors)
        return given, [f"no test runner of this project has {selector}" for selector in nobodys]
    shares: list[list[str]] = [[] for _ in runners]
    wrong: list[str] = []
    lists: list[list[str]] | None = None
    for selector in selectors:
        shared, _ = share(runners, [selector])
        at = next((at for at, words in enumerate(shared) if words), None)
        name = _listed_name(runners[at], shared[at][0]) if at is not None else ""
        is_sure = at is not None and is_certain(runners[at], shared[at][0])
        if at is not None and is_sure and not name:
            shares[at] += shared[at]
            continue
        lists = lists if lists is not None else [known(runner) for runner in runners]
        if at is not None and is_sure and (name in lists[at] or not lists[at]):
            shares[at] += shared[at]
            continue
        found = looked_up(lists, runners, selector)
        if not isinstance(found, str):
            shares[found[0]].append(found[1])
        elif at is not None and not lists[at]:  # it lists nothing: it has to say itself what it makes of the name
            shares[at] += shared[at]
        else:
            wrong.append(found)
    return shares, wrong


def main(argv: list[str]) -> int:
    """Run the chosen tests, one runner after the other; return the first exit code that is not 0."""
    runners: list[dict[str, Any]] = json.loads(argv[0])
    selectors = argv[1:]
    shares, wrong = chosen_of(runners, selectors)
    if wrong:
        sys.stdout.write("".join(f"{one}\n" for one in wrong))
        sys.stdout.write(
            "Nothing was run. Any end of an id that only one test has is enough, as is the path of a file.\n"
        )
        return NO_RUNNER
    code = 0
    # who sits at a terminal may want a debugger; else nothing waits for an answer
    at_terminal = sys.stdin is not None and sys.stdin.isatty()
    stdin = None if at_terminal else subprocess.DEVNULL
    for runner, chosen in zip(runners, shares, strict=True):
        if selectors and not chosen:
            continue
        for command in commands(runner, chosen):
            where = f" (in {runner['folder']})" if runner["folder"] else ""
            sys.stdout.write(f"$ {' '.join(command)}{where}\n")
            sys.stdout.flush()
            done = subprocess.run(command, cwd=runner["folder"] or ".", stdin=stdin, check=False)
            code = code or done.returncode
            if chosen and runner["name"] == "pytest" and done.returncode == _NOT_FOUND:
                _say_near(runner, chosen)
    return code if code >= 0 else 128 - code


def _say_near(runner: dict[str, Any], chosen: list[str]) -> None:
    """Print which tests are near to ids that pytest does not have."""
    entries = known(runner)
    there = {*entries, *map(_without_case, entries)}
    for word in chosen:
        if "::" in word and word not in there and (near := _near(word, sorted(there))):
            sys.stdout.write(f"no test is called {word}{near}\n")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
