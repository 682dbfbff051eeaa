"""Eight issues of a real package, two of them in conflict: queued, driven four at once, landed, verified (issue 17)."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from e2e.packages import Edit
from e2e.sdists import INFLECTION, unpack
from kit import ISSUE, SPLIT_ACCEPTED, make_project

if TYPE_CHECKING:
    from kit import Entry, Project

pytestmark = [pytest.mark.slow, pytest.mark.broad, pytest.mark.timeout(3600)]

AGENT: Final = Path(__file__).parents[1] / "e2e" / "agents" / "known_answer.py"
CODE: Final = "inflection/__init__.py"


@dataclass(frozen=True)
class Change:
    """In the package `old` becomes `new`, so that `call` is `value`; `later`: both once others have changed that."""

    old: str
    new: str
    call: str
    value: str
    later: tuple[str, str] | None = None


CHANGES: Final = (
    Change("return string[0].lower() + camelize", "return string[:1].lower() + camelize", "camelize('', False)", "''"),
    Change(
        "return word.replace('_', '-')",
        "return word.replace('_', '-').replace(' ', '-')",
        "dasherize('a b')",
        "'a-b'",
        ("replace('_', '-').replace('.', '-')", "replace('_', '-').replace('.', '-').replace(' ', '-')"),
    ),
    Change("format(number, ordinal(number))", "format(int(number), ordinal(number))", "ordinalize(3.0)", "'3rd'"),
    Change("pluralize(underscore(word))", "pluralize(underscore(word).strip())", "tableize('Ham\\t')", "'hams'"),
    Change(
        'word.replace("-", "_")',
        'word.replace("-", "_").replace(" ", "_")',
        "underscore('a b')",
        "'a_b'",
        ('replace("-", "_").replace(".", "_")', 'replace("-", "_").replace(".", "_").replace(" ", "_")'),
    ),
    Change("return normalized.encode(", "return normalized.replace('€', 'EUR').encode(", "transliterate('€')", "'EUR'"),
    Change(
        "return word.replace('_', '-')",
        "return word.replace('_', '-').replace('.', '-')",
        "dasherize('a.b')",
        "'a-b'",
        ("replace('_', '-').replace(' ', '-')", "replace('_', '-').replace(' ', '-').replace('.', '-')"),
    ),
    Change(
        'word.replace("-", "_")',
        'word.replace("-", "_").replace(".", "_")',
        "underscore('a.b')",
        "'a_b'",
        ('replace("-", "_").replace(" ", "_")', 'replace("-", "_").replace(" ", "_").replace(".", "_")'),
    ),
)


def answers(run: str, number: int, change: Change, code: Edit) -> list[Entry]:
    """Return what the agents of a run answer."""
    tests = f"test_issue_{number}.py"
    text = f"import inflection\n\n\ndef test_issue_{number}():\n    assert inflection.{change.call} == {change.value}\n"
    title = f"Issue {number}"
    file = {"path": CODE, "action": "modify"}
    task = {
        "title": title,
        "description": change.call,
        "acceptance_criteria": [f"{change.call} is {change.value}"],
        "files": [file],
        "test_files": [{"path": tests, "action": "create"}],
        "symbols": [],
    }
    plan = {
        "problem": change.call,
        "approach": "The smallest change.",
        "files": [{**file, "why": "it is there"}],
        "test_design": {"behaviours": [{"action": change.call, "outcome": change.value}]},
    }
    made = {"result": "COMPLETE", "summary": title}
    found: list[Entry] = [
        {"when": {"kind": "plan"}, "report": plan},
        {"when": {"kind": "split"}, "report": {"tasks": [task]}},
        SPLIT_ACCEPTED,
        {"when": {"role": "check"}, "report": {"verdict": "ACCEPTABLE"}},
        {"when": {"role": "simplify"}, "report": {"verdict": "JUSTIFIED COMPLEXITY"}},
        {"when": {"kind": "write-tests"}, "edits": [[tests, "", text]], "report": {"verdict": "TESTS_READY"}},
        {"when": {"kind": "implement"}, "edits": [[code.path, code.old, code.new]], "report": made},
    ]
    return [{**one, "when": {**one["when"], "run_id": run}} for one in found]


def prepare(tmp_path: Path, cache: Path) -> Project:
    """Return the package on `main` with eight issues, and a program that knows the answers."""
    files = {".gitignore": "*.egg-info/\n__pycache__/\n"}
    listed: list[str] = []
    known: list[Entry] = []
    for number, change in enumerate(CHANGES, 1):
        files[f"TODO/GAL-{number}.md"] = ISSUE.replace("GAL-1", f"GAL-{number}").replace(
            "Reject empty names", f"Issue {number}"
        )
        listed.append(f"- [ ] [GAL-{number}](GAL-{number}.md) Issue {number}")
        known += answers(f"run-GAL-{number}", number, change, Edit(CODE, change.old, change.new))
        if change.later is not None:
            known += answers(f"run-GAL-{number}@2", number, change, Edit(CODE, *change.later))
    files["TODO/README.md"] = "\n".join(["# Issues", "", "## Core", *listed, ""])
    project = make_project(tmp_path, files)
    project.git("switch", "--quiet", "main")
    unpack(INFLECTION, cache, project.root)
    project.commit(INFLECTION.stem)
    place = project.home / "answers.json"
    place.write_text(json.dumps(known), encoding="utf-8")
    argv, read = [sys.executable, str(AGENT), str(place)], [str(AGENT), str(place)]
    project.configure(f'[agents]\nbackend = "command"\nargv = {json.dumps(argv)}\nread = {json.dumps(read)}\n')
    return project


def boxes(project: Project) -> list[str]:
    """Return the boxes of README.md on the base, in order."""
    page = project.git("show", "main:TODO/README.md")
    return [line[2:5] for line in page.splitlines() if line.startswith("- [")]


def landed(project: Project) -> dict[str, Any]:
    """Land what is finished, and return what became of each run."""
    return {line["run"]: line for line in project.document("land")["runs"]}


def test_eight_issues_of_a_real_package_are_landed_and_what_conflicts_is_ordered_again(
    pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    project = prepare(tmp_path, Path(pytestconfig.cache.mkdir("sdists")))
    start = project.git("rev-parse", "main")
    assert project.redfirst("queue", "add", *(f"GAL-{number}" for number in range(1, 9))).returncode == 0
    done = project.redfirst("work", "--once", "--jobs", "4", timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    assert project.git("rev-parse", "main") == start

    first = landed(project)
    refused = sorted(run for run, line in first.items() if line["status"] == "refused")
    assert len(first) == 8
    assert [line["status"] for line in first.values()].count("landed") == 6
    assert [first[run]["then"] for run in refused] == ["order_again"] * 2
    assert all(CODE in first[run]["why"][0] for run in refused)
    verified = project.document("verify", f"{start}..main")
    assert (verified["status"], len(verified["commits"])) == ("verified", 12)
    assert boxes(project).count("[x]") == 6

    tip = project.git("rev-parse", "main")
    assert project.redfirst("work", "--once", "--jobs", "2", timeout=900).returncode == 0
    again = landed(project)
    assert {run: line["status"] for run, line in again.items()} == {f"{run}@2": "landed" for run in refused}
    assert boxes(project) == ["[x]"] * 8
    assert project.document("verify", f"{tip}..main")["status"] == "verified"
    assert project.git("status", "--porcelain") == ""
    swept = project.document("gc", "--apply", "--older-than", "0s")["things"]
    kept = {line["what"] for line in swept if line["status"] == "kept"}
    assert kept == {str(project.root.parent / f"project-{run.removeprefix('run-').lower()}") for run in refused}
