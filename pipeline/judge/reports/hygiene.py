"""Checks a plan or task before an agent is paid to read it (dispatch hygiene).

A linter: texts in, problems out, each with a rule id and a line. Rules about words look at prose only; inline code,
quotations, URLs and fenced blocks are what the author cites, not what the author says. An `error` sends the draft back
(HYGIENE), a `note` is handed to @check. Each rule about words is written against its false alarms first: `await`,
"wait, then retry", a folder called TODO, a forbidden command that is named in order to forbid it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Protocol

from pipeline.judge.policy.control_files import is_control
from pipeline.judge.reports.artifacts import APPROACH, BEHAVIOURS
from pipeline.judge.reports.fields import Action, Evidence, FileChange
from pipeline.judge.reports.markdown import Document, Fence, Text, parse
from pipeline.judge.reports.problems import Problem, Weight
from pipeline.judge.reports.tasks import CODE_CONTEXT, CRITERIA, MAKING, Task, criterion_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence


BLOCK_LINES: Final = 5
"""The most lines of a code block: enough to show a seam, too few for an implementation."""

_APART: Final = (
    "name it in `files`, and put its tests into a test file. The same holds of examples in its documentation: @make "
    "may change these, so they are no test of its work"
)
_BODY_STATEMENTS: Final = 3
_FILES_PER_TASK: Final = 2
SUBJECT: Final = 72
"""The longest first line of a commit message; it holds a task's title behind the commit's type."""
LONGEST_TITLE: Final = SUBJECT - len("refactor: ")


def lint_plan(text: str, *, files: Sequence[FileChange], existing: Collection[str]) -> tuple[Problem, ...]:
    """Return the problems of a plan.md, in the order of their lines.

    Args:
        text: The rendered plan.
        files: The files that the plan names.
        existing: Every path of the tree that the plan is for.
    """
    document = parse(text)
    found = [*_any_text(document), *_behaviours(document), *_questions(document), *_paths(text, files, existing)]
    found += _control(text, [change.path for change in files])
    return tuple(sorted(found))


class TestNames(Protocol):
    """The languages' rules on where tests can be (`languages.names`)."""

    def why_overlooked(self, path: str) -> str | None:
        """Return why a test at `path` would not be run, None if it would."""
        ...

    def may_share_file(self, path: str) -> bool:
        """Return whether tests may be in a production file."""
        ...


def lint_task(
    text: str,
    task: Task,
    *,
    existing: Collection[str],
    names: TestNames,
    test_path: Callable[[str], bool],
) -> tuple[Problem, ...]:
    """Return the problems of a task file, in the order of their lines.

    Args:
        text: The whole file.
        task: What it parses to.
        existing: Every path of the tree that the task will start from, so with what earlier tasks create.
        names: What the languages say of paths.
        test_path: Whether tests are looked for at a path.
    """
    document = parse(text)
    found = [
        *_any_text(document),
        *_criteria(document),
        *_paths(text, task.files, existing),
        *_test_files(text, task, existing, names, test_path),
        *_snippet_paths(document, existing),
        *_task_size(text, task),
        *_title(document, task),
        *_control(text, [change.path for change in (*task.files, *task.test_files)]),
    ]
    return tuple(sorted(found))


def lint_split(tasks: Sequence[Task], names: TestNames, *, max_tasks: int) -> tuple[Problem, ...]:
    """Return the problems between the tasks of a split; the line is the task's number in the list, from 1."""
    found: list[Problem] = []
    if len(tasks) > max_tasks:
        found.append(Problem(max_tasks + 1, "H014", f"{len(tasks)} tasks; accepted are {max_tasks} at most"))
    creators: dict[str, str] = {}
    for place, task in enumerate(tasks, start=1):
        if task.evidence is Evidence.RED and not task.files:
            found.append(Problem(place, "H014", f'task {task.id} names no file; only evidence "regression" needs none'))
        if task.evidence is Evidence.RED and not task.test_files:
            found.append(Problem(place, "H014", f'task {task.id} names no test file; evidence "red" needs one'))
        tested = {change.path for change in task.test_files}
        found.extend(
            Problem(place, "H014", f"task {task.id} names {change.path} as production and as test file; {_APART}")
            for change in task.files
            if change.path in tested and not names.may_share_file(change.path)
        )
        created = [change.path for change in (*task.files, *task.test_files) if change.action in MAKING]
        for path in dict.fromkeys(created):
            other = creators.setdefault(path, task.id)
            if other != task.id:
                found.append(Problem(place, "H014", f"tasks {other} and {task.id} both create {path}"))
    return tuple(found)


def _any_text(document: Document) -> Iterator[Problem]:
    # The H1 carries the issue's own title, which the drafter cannot mend.
    said = [line for line in document.prose if not line.text.startswith("# ")]
    for line in said:
        what = unfinished(line.prose)
        if what:
            yield Problem(line.number, "H001", f"unfinished text, {what}; write the final version only")
    for fence in document.fences:
        if not fence.closed:
            yield Problem(fence.number, "H001", "a code block that is never closed")
        yield from _block_length(fence)
    inside = [line for fence in document.fences for line in fence.lines]
    every = sorted((*document.front, *said, *inside), key=lambda line: line.number)
    for line in every:
        shell = hidden_shell(line.text)
        if shell:
            yield Problem(line.number, "H004", f"{shell[0]} ({shell[1]!r}); write the program and its arguments")
    for number, statements in bodies(every):
        if statements >= _BODY_STATEMENTS:
            yield Problem(number, "H003", f"a function body of {statements} statements; leave bodies to @make")
    yield from _twice(document)


def _block_length(fence: Fence) -> Iterator[Problem]:
    if len(fence.filled) <= BLOCK_LINES or fence.language == "mermaid":
        return
    size = f"{len(fence.filled)} lines; accepted are {BLOCK_LINES}"
    if _is(fence.section, CODE_CONTEXT):
        yield Problem(fence.number, "H005", f"this snippet has {size}, show the seam and not the body")
    else:
        yield Problem(fence.number, "H002", f"this code block has {size}, say what and not how")


def _twice(document: Document) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for heading in document.headings:
        if heading.text.startswith("## "):
            first = seen.setdefault(heading.section.casefold(), heading.number)
            if first != heading.number:
                yield Problem(heading.number, "H006", f"the section {heading.section!r} is there already, line {first}")
    blocks: dict[tuple[str, ...], int] = {}
    names: dict[tuple[str, str, str], int] = {}
    for fence in document.fences:
        body = tuple(" ".join(line.split()) for line in fence.filled)
        if len(body) > 1 and blocks.setdefault(body, fence.number) != fence.number:
            yield Problem(fence.number, "H006", f"this block is the same as the one in line {blocks[body]}")
            continue
        for name in sorted({found["name"] for line in fence.filled if (found := _DEFINES.match(line))}):
            first = names.setdefault((fence.section, fence.label, name), fence.number)
            if first != fence.number and len(body) > 1:
                yield Problem(fence.number, "H006", f"a second version of {name}, the first is in line {first}")


def _questions(document: Document) -> Iterator[Problem]:
    for line in document.section(APPROACH):
        if not line.is_heading and _QUESTION.search(line.prose):
            yield Problem(line.number, "H012", "an open question; decide it here, or list it as a risk")


_BEHAVIOUR: Final = re.compile(r"ACTION:(?P<action>.*?)OUTCOME:(?P<outcome>.*)", re.IGNORECASE | re.DOTALL)


def _behaviours(document: Document) -> Iterator[Problem]:
    items: list[tuple[int, list[str]]] = []
    for line in document.prose:
        if not _is(line.subsection, BEHAVIOURS) or line.is_heading or not line.text.strip():
            continue
        if re.match(r"\s{0,1}[-*+]\s", line.text) or not items:
            items.append((line.number, []))
        items[-1][1].append(line.text)
    for number, texts in items:
        found = _BEHAVIOUR.search(" ".join(texts))
        if found is None or not found["action"].strip() or not found["outcome"].strip():
            yield Problem(number, "H010", "accepted is `ACTION: what is done OUTCOME: what can be observed`")
        elif _STRUCTURAL.search(found["outcome"]):
            yield Problem(number, "H010", "a structural fact is no observable outcome; say what a caller sees")


def _criteria(document: Document) -> Iterator[Problem]:
    boxes = [line for line in document.section(CRITERIA) if re.match(r"\s*[-*+] \[[ xX]\]", line.text)]
    if not boxes:
        place = next((line.number for line in document.headings if _is(line.section, CRITERIA)), 1)
        yield Problem(place, "H009", f"accepted is a section {CRITERIA!r} with at least one `- [ ]` line")
    for line in boxes:
        if _VAGUE.fullmatch(criterion_of(line.text).strip()):
            yield Problem(line.number, "H009", "this criterion cannot fail; name an input and what is observed")


def _paths(text: str, files: Iterable[FileChange], existing: Collection[str]) -> Iterator[Problem]:
    for change in files:
        source = change.origin if change.action is Action.RENAME else change.path
        if change.action is not Action.CREATE and source and source not in existing:
            message = _missing(source, existing, "; accepted for a new file is the action create")
            yield Problem(_line_of(text, source), "H007", message)
        if change.action in MAKING and change.path in existing:
            message = f"{change.path} exists already; accepted for it is the action modify"
            yield Problem(_line_of(text, change.path), "H007", message)


def _control(text: str, paths: Iterable[str]) -> Iterator[Problem]:
    for path in dict.fromkeys(paths):
        if is_control(path):
            yield Problem(_line_of(text, path), "H013", f"{path} controls tests or builds", Weight.NOTE)


def _test_files(
    text: str, task: Task, existing: Collection[str], names: TestNames, test_path: Callable[[str], bool]
) -> Iterator[Problem]:
    for change in task.test_files:
        line = _line_of(text, change.path)
        if why := names.why_overlooked(change.path):
            yield Problem(line, "H008", f"{change.path}: {why}")
        elif change.action != Action.DELETE and not test_path(change.path):
            yield Problem(line, "H008", f"{change.path} is not where tests are looked for")
        in_module = names.may_share_file(change.path) and any(file.path == change.path for file in task.files)
        if change.origin is not None and change.origin not in existing:
            yield Problem(line, "H007", _missing(change.origin, existing, ", so it cannot be renamed"))
        if (change.action in MAKING) == (change.path in existing) and not in_module:
            fits = f"; the action {change.action} does not fit"
            is_there = change.path in existing
            message = f"{change.path} exists already{fits}" if is_there else _missing(change.path, existing, fits)
            yield Problem(line, "H007", message)


def _snippet_paths(document: Document, existing: Collection[str]) -> Iterator[Problem]:
    for line in document.section(CODE_CONTEXT):
        found = re.fullmatch(r"`([^`]+)`:?", line.text.strip())
        if found and found[1] not in existing:
            message = _missing(found[1], existing, ", so nothing can be quoted from it")
            yield Problem(line.number, "H007", message)


def _missing(path: str, existing: Collection[str], why: str) -> str:
    """Return that a file is not there; where one file of the tree alone ends so, that it is meant by its whole path."""
    ends = [there for there in existing if there.endswith(f"/{path}")]
    return (
        f"{path} does not exist; write the whole path: {ends[0]}" if len(ends) == 1 else f"{path} does not exist{why}"
    )


def _task_size(text: str, task: Task) -> Iterator[Problem]:
    if len(task.files) > _FILES_PER_TASK:
        message = f"{len(task.files)} files in one task; more than {_FILES_PER_TASK} often hide two concerns"
        yield Problem(_line_of(text, task.files[_FILES_PER_TASK].path), "H011", message, Weight.NOTE)


def _title(document: Document, task: Task) -> Iterator[Problem]:
    if len(task.title) > LONGEST_TITLE:
        line = next((line.number for line in document.headings), 1)
        message = f"the title has {len(task.title)} characters; a commit's subject cuts it behind {LONGEST_TITLE}"
        yield Problem(line, "H018", message, Weight.NOTE)


def _line_of(text: str, path: str) -> int:
    """Return the number of the first line that names `path` as a whole, 1 if none does."""
    whole = re.compile(rf"(?<![\w./-]){re.escape(path)}(?![\w/-]|\.\w)")
    return next((number for number, line in enumerate(text.split("\n"), start=1) if whole.search(line)), 1)


def _is(title: str, wanted: str) -> bool:
    return title.strip().casefold() == wanted.casefold()


_START: Final = r"(?:^[\s>*+\d.)-]*|[.!?:;]\s+|[(\u2026\u2013\u2014]\s*|\b(?:no,|oh,?|hm+,?|well,)\s+)"
_AFTER_ACTUALLY: Final = r"(?:,|\s+(?:no|let|we|i|it|this|that|maybe|better|instead)\b)"
_AFTER_WAIT: Final = r"\s*(?:\.{2,}|\u2026|!|[\u2013\u2014]|,(?!\s*(?:then|until|for|up|at)\b))"
_MARK: Final = r"(?:TODO|FIXME|XXX)"
_UNFINISHED: Final = (
    (re.compile(_START + "actually" + _AFTER_ACTUALLY, re.IGNORECASE), "a change of mind"),
    (re.compile(_START + "wait" + _AFTER_WAIT, re.IGNORECASE), "a change of mind"),
    (re.compile(r"\blet me (?:re-?consider|re-?think|think|start over)\b", re.IGNORECASE), "a change of mind"),
    (re.compile(r"\bon second thought\b|\bscratch that\b|\bhmm+\b", re.IGNORECASE), "a change of mind"),
    (re.compile(rf"(?<![\w/]){_MARK}\s*(?::|\()|\({_MARK}\)|^[\s*+>-]*{_MARK}\s*(?:$|-\s)"), "an open end"),
    (re.compile(r"(?<![\w/])TBD\b|\?\?\?"), "an open end"),
)

_SHELL: Final = r"(?:\S*/)?(?:ba|z|da|k|fi)?sh"
_SHELLS: Final = (
    (re.compile(rf"(?<![\w./-]){_SHELL}\s+(?:-\S+\s+)*-[a-z]*c\b"), "a shell that is given a command line"),
    (re.compile(rf"\bnix\s+(?:develop|shell)\b[^|;&]*\s(?:-c|--command)\s+{_SHELL}\b"), "a shell in the nix wrapper"),
    (re.compile(r"(?<![\w-])cd\s+(?:\"[^\"]+\"|'[^']+'|[^\s;&|]+)\s*(?:&&|;)"), "a change of folder before a command"),
)
_FORBIDDING: Final = re.compile(
    r"\b(?:never|not|no|without|instead of|avoid\w*|remov\w+|replac\w+"
    r"|forb[ia]d\w*|reject\w*|refus\w+|den(?:y|ie[sd]))\b",
    re.IGNORECASE,
)
_REACH: Final = 40

_FUNCTION: Final = re.compile(
    r"^(?P<indent>\s*)(?:(?:async\s+)?def\s+\w+.*:\s*(?:#.*)?$"
    r"|(?:pub(?:\([^)]*\))?\s+)?(?:(?:async|const|unsafe)\s+)*fn\s+\w+.*\{\s*$"
    r"|(?:export\s+)?(?:default\s+)?(?:async\s+)?function\b.*\{\s*$)"
)
_TRIVIAL: Final = re.compile(
    r"^\s*(?:\.\.\.|pass|raise NotImplementedError.*|todo!\(.*\);?|unimplemented!\(.*\);?|[\"'#/*].*|[})\]]*[;,]?)\s*$"
)
_DEFINES: Final = re.compile(r"^\s*(?:pub\s+)?(?:async\s+)?(?:def|fn|class|struct|enum|function)\s+(?P<name>\w+)")

_STRUCTURAL: Final = re.compile(
    r"\b(?:has|have|contains?|with)\s+(?:\d+|one|two|three|four|five|six)\s+"
    r"(?:variants?|fields?|members?|attributes?|methods?|parameters?)\b",
    re.IGNORECASE,
)
_VAGUE: Final = re.compile(
    r"(?:(?:it|everything|all|the|code|feature|change|function|implementation|bug)\s+)*"
    r"(?:works?|is|are|behaves?)?\s*"
    r"(?:good|fine|ok(?:ay)?|correct(?:ly)?|properly|well|clean|as expected|done|fixed|implemented|complete)?[.!]?",
    re.IGNORECASE,
)
_QUESTION: Final = re.compile(r"[\w)\]'*]\s?\?(?=\s|$|[)*_])")


def unfinished(prose: str) -> str | None:
    """Return the kind of unfinished text in a line of prose, None if there is none."""
    return next((what for pattern, what in _UNFINISHED if pattern.search(prose.strip())), None)


def hidden_shell(text: str) -> tuple[str, str] | None:
    """Return the fault of a command in the line and the command's beginning, None if there is none.

    A line that forbids the command just before naming it is no use of it.
    """
    for pattern, what in _SHELLS:
        found = pattern.search(text)
        if found and not _FORBIDDING.search(text[max(0, found.start() - _REACH) : found.start()]):
            return what, found[0].strip()
    return None


def bodies(lines: Sequence[Text]) -> Iterator[tuple[int, int]]:
    """Yield the line of each function head and the number of statements in its body.

    Stubs, comments, docstrings in one line and closing brackets are no statements.
    """
    for index, line in enumerate(lines):
        head = _FUNCTION.match(line.text)
        if head is None:
            continue
        statements = 0
        previous = line.number
        for inner in lines[index + 1 :]:
            is_blank = not inner.text.strip()
            is_outside = not is_blank and len(inner.text) - len(inner.text.lstrip()) <= len(head["indent"])
            if inner.number != previous + 1 or is_outside:
                break
            previous = inner.number
            statements += not is_blank and not _TRIVIAL.match(inner.text)
        yield line.number, statements
