"""What the tests of loops and lanes share: a project of many small modules, and what each agent was handed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kit import (
    ALL_WELL,
    FILES,
    ISSUE,
    PLAN_ACCEPTED,
    PLAN_SIMPLE,
    README,
    RESULT_SIMPLE,
    SPLIT_ACCEPTED,
    Project,
    make_project,
)

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry


@dataclass(frozen=True)
class Dispatch:
    """One dispatch as its agent saw it: the document, and the artifacts beside the view."""

    folder: Path

    @property
    def document(self) -> dict[str, Any]:
        """Return the dispatch document."""
        return json.loads((self.folder / "exchange" / "dispatch.json").read_text(encoding="utf-8"))

    @property
    def result(self) -> dict[str, Any]:
        """Return result.json."""
        return json.loads((self.folder / "result.json").read_text(encoding="utf-8"))

    @property
    def artifacts(self) -> set[str]:
        """Return the names of the artifacts that the document offers."""
        return set(self.document["artifacts"])

    def assert_artifact_rule(self) -> None:
        """Assert that the prompt names exactly what is there, with a sentence, and that nothing of it is empty."""
        prompt = self.document["prompt"]
        assert prompt == (self.folder / "prompt.md").read_text(encoding="utf-8")
        there = {folder.name: list(folder.iterdir()) for folder in (self.folder / "artifacts").iterdir()}
        assert self.artifacts == set(there), self.folder
        _, _, here = prompt.rpartition("\n# This request: ")
        listed = re.findall(r"^\* `(\w+)`: `(/[^`]*)`\n(?:  (\S))?", here, re.MULTILINE)
        assert {name for name, _, _ in listed} == set(there), self.folder
        read, looked_up = here.partition("\nTo look up, ")[::2]
        to_read = {name for name in there if f"* `{name}`: `/" in read}
        assert {name for name, _, said in listed if said} == to_read, "each that is to be read has a sentence"
        assert set(re.findall(r"`(/[^`]*)`", looked_up)) >= set(self.document["known"])
        assert len(listed) == sum(map(len, there.values()))
        empty = [str(file) for files in there.values() for file in files if not file.read_text("utf-8").strip()]
        assert empty == [], self.folder

    @property
    def known(self) -> set[str]:
        """Return the artifacts that are only to be looked up, as `name/file`."""
        return {"/".join(path.split("/")[-2:]) for path in self.document["known"]}

    def text(self, artifact: str) -> str:
        """Return all the text of one artifact; the document must offer exactly the files that lie there."""
        offered = self.document["artifacts"][artifact]
        names = [offered] if isinstance(offered, str) else offered
        files = sorted((self.folder / "artifacts" / artifact).iterdir())
        assert sorted(name.rpartition("/")[2] for name in names) == [file.name for file in files]
        return "\n".join(file.read_text(encoding="utf-8") for file in files)


@dataclass(frozen=True)
class Played:
    """A run that was played: the project, the last document that redfirst printed, the run's name."""

    project: Project
    document: dict[str, Any]
    name: str = "run-GAL-1"

    @property
    def rows(self) -> list[str]:
        """Return the rows of the matrix that fired, in order."""
        return self.project.rows(self.name)

    def rows_of(self, task: str) -> list[str]:
        """Return the rows that fired for one task, in order."""
        lines = self.project.journal(self.name)
        return [line["data"]["row"] for line in lines if line["kind"] == "decision" and line["data"]["task"] == task]

    def counters(self, row: str) -> dict[str, int]:
        """Return the limits that the decisions of one row paid from, as they stood after the last of them."""
        lines = [line["data"] for line in self.project.journal(self.name) if line["kind"] == "decision"]
        return {key: count for data in lines if data["row"] == row for key, count in data["counters"].items()}

    def exhausted(self) -> list[tuple[str, str]]:
        """Return every limit that was found reached: the row, and the loop."""
        lines = [line["data"] for line in self.project.journal(self.name) if line["kind"] == "decision"]
        return [(data["row"], loop) for data in lines for loop in data["exhausted"]]

    def asked(self, step: str, nth: int = 1, *, role: str | None = None, task: str | None = None) -> Dispatch:
        """Return the nth dispatch of a step, counted from 1."""
        found = self.dispatches(step, role=role, task=task)
        assert len(found) >= nth, f"{step} was asked {len(found)} times"
        return found[nth - 1]

    def dispatches(self, step: str, *, role: str | None = None, task: str | None = None) -> list[Dispatch]:
        """Return the dispatches of a step in order."""
        started = [line["data"] for line in self.project.journal(self.name) if line["kind"] == "dispatch_started"]
        return [
            Dispatch(self.folder / "dispatches" / data["dispatch"])
            for data in started
            if data["step"] == step and role in {None, data["role"]} and task in {None, data["task"]}
        ]

    def assert_artifact_rule(self) -> int:
        """Assert of each dispatch that it is given what its prompt names; return how many there are."""
        folders = sorted((self.folder / "dispatches").iterdir())
        for folder in folders:
            Dispatch(folder).assert_artifact_rule()
        return len(folders)

    @property
    def folder(self) -> Path:
        """Return the run's folder."""
        return self.project.run_folder(self.name)

    def artifact(self, name: str) -> str:
        """Return the text of a file of the run."""
        return (self.folder / name).read_text(encoding="utf-8")

    def subjects(self) -> list[str]:
        """Return the subjects of the commits that the run put on the branch, oldest first."""
        start = json.loads(self.artifact("run.json"))["start_commit"]
        return self.project.git("log", "--reverse", "--format=%s", f"{start}..{self.document['branch']}").splitlines()

    def tasks(self) -> dict[str, str]:
        """Return where each task of the present split stands."""
        return {task["id"]: task["state"] for task in self.document["tasks"]}


def play(project: Project, entries: list[Entry], *argv: str, extra: str = "", name: str = "run-GAL-1") -> Played:
    """Run GAL-1 with these answers; there must be a run, however it ended."""
    project.use_script(entries, extra)
    document = project.run(*argv)
    assert document.get("run_id") == name, (document.get("error"), document["_stderr"])
    return Played(project, document, name)


def go_on(played: Played, *argv: str) -> Played:
    """Go on with the run: `resume`, `approve`, `reject` ... with further words."""
    command, *rest = argv
    return Played(played.project, played.project.document(command, played.name, *rest), played.name)


# --- a project of many small modules ----------------------------------------------------------------------------


def module(number: int, value: int = 0) -> str:
    """Return a module with one function."""
    return f"def value_{number}():\n    return {value}\n"


def module_test(number: int, value: int | None = None, more: str = "") -> str:
    """Return the tests of a module: its function returns *value*, its number by default."""
    wanted = number if value is None else value
    head = f"from m{number} import value_{number}\n\n\n"
    return f"{head}def test_value_{number}():\n    assert value_{number}() == {wanted}\n{more}"


def modules_project(
    tmp_path: Path, numbers: range, *, more: dict[str, str] | None = None, label: str = "feature"
) -> Project:
    """Return a project with a module m<n> for each number, its tasks one at a time; `more` adds or replaces files."""
    files = {
        "pyproject.toml": FILES["pyproject.toml"],
        "TODO/GAL-1.md": ISSUE.replace("[bug]", f"[{label}]"),
        "TODO/README.md": README,
        "tests/test_base.py": "import m1\n\n\ndef test_base():\n    assert callable(m1.value_1)\n",
        **{f"m{number}.py": module(number) for number in numbers},
        **(more or {}),
    }
    project = make_project(tmp_path, files)
    project.env["REDFIRST_LIMITS__PARALLEL"] = "1"  # what loops do is told in one order
    return project


def module_task(number: int, **more: Any) -> dict[str, Any]:
    """Return a drafted task: the function of module *number* shall return its number, tests in a new file."""
    return {
        "title": f"Let value {number} be right",
        "acceptance_criteria": [f"value_{number}() returns {number}"],
        "files": [{"path": f"m{number}.py", "action": "modify"}],
        "test_files": [{"path": f"tests/test_m{number}.py", "action": "create"}],
        **more,
    }


def writes(number: int, content: str | None = None, *, task: str | None = None, **more: Any) -> Entry:
    """Return an answer of @test about a module: a new test file, TESTS_READY. The task has its number by default."""
    report = {"verdict": "TESTS_READY", **more}
    files = {f"tests/test_m{number}.py": module_test(number) if content is None else content}
    return {"when": {"kind": "write-tests", "task": task or str(number)}, "files": files, "report": report}


def makes(number: int, value: int | None = None, *, task: str | None = None, **more: Any) -> Entry:
    """Return an answer of @make about a module: its function returns *value*, its number by default; COMPLETE."""
    content = module(number, number if value is None else value)
    return {
        "when": {"kind": "implement", "task": task or str(number)},
        "files": {f"m{number}.py": content},
        "report": {"result": "COMPLETE", "summary": f"returns {number}", **more},
    }


def stops(number: int, **report: Any) -> Entry:
    """Return an answer of @make that changes nothing and says why it stopped."""
    return {"when": {"kind": "implement", "task": str(number)}, "report": {"result": "INCOMPLETE", **report}}


def diagnoses(number: int, diagnosis: str, notes: str = "", **more: Any) -> Entry:
    """Return a diagnosis of @check for the task of that number."""
    when = {"kind": "judge", "question": "diagnose", "task": str(number)}
    return {"when": when, "report": {"diagnosis": diagnosis, "notes": notes, **more}}


def rules(number: int, question: str, *, accepted: bool, notes: str = "") -> Entry:
    """Return a yes or no of @check for the task of that number."""
    when = {"kind": "judge", "question": question, "task": str(number)}
    return {"when": when, "report": {"accepted": accepted, "notes": notes}}


def finding(title: str, severity: str = "HIGH", **more: Any) -> dict[str, Any]:
    """Return a finding with evidence, so that its severity stands."""
    return {"severity": severity, "title": title, "problem": f"{title}.", "evidence": "seen in the diff", **more}


def review(kind: str, verdict: str, *findings: dict[str, Any], **more: Any) -> Entry:
    """Return a review of @check."""
    answers = {"answers": ALL_WELL} if kind == "review-split" and verdict == "ACCEPTABLE" else {}
    report = {"verdict": verdict, "findings": list(findings), **answers, **more}
    return {"when": {"kind": kind, "role": "check"}, "report": report}


def resolved(*ids: str) -> list[dict[str, str]]:
    """Return the answers of a later review to these findings: they are mended."""
    return [{"id": id_, "status": "resolved"} for id_ in ids]


def missing_tests(path: str, *texts: str, title: str = "Test the words") -> list[Entry]:
    """Return the answers from a final review that misses a test to its settling; @test writes these texts in turn."""
    fix = {"title": title, "acceptance_criteria": ["the words are tested"], "files": []}
    ready = {"verdict": "TESTS_READY"}
    return [
        review("review-result", "NEEDS WORK", finding("Its words are untested", concern="test")),
        RESULT_SIMPLE,
        split_into({**fix, "test_files": [{"path": path, "action": "modify"}]}),
        *({"when": {"kind": "write-tests"}, "files": {path: text}, "report": ready} for text in texts),
        review("review-result", "ACCEPTABLE", prior=resolved("final-1-01")),
        RESULT_SIMPLE,
    ]


def plan_for(*paths: str, **more: Any) -> Entry:
    """Return a plan that modifies these files."""
    report = {
        "problem": "Some values are wrong.",
        "approach": "Return the right ones.",
        "files": [{"path": path, "action": "modify", "why": "it holds a value"} for path in paths],
        "test_design": {"behaviours": [{"action": "call the function", "outcome": "its number is returned"}]},
        **more,
    }
    return {"when": {"kind": "plan"}, "report": report}


def split_into(*tasks: dict[str, Any]) -> Entry:
    """Return a split."""
    return {"when": {"kind": "split"}, "report": {"tasks": list(tasks)}}


def until_tests(*tasks: dict[str, Any]) -> list[Entry]:
    """Return the answers from the plan to the accepted split of these tasks."""
    paths = dict.fromkeys(file["path"] for task in tasks for file in task["files"] if file["action"] == "modify")
    return [plan_for(*paths), PLAN_ACCEPTED, PLAN_SIMPLE, split_into(*tasks), SPLIT_ACCEPTED]
