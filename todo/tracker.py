"""The operations on a tracker: each reads from a source and returns the edits it wants; none of them writes.

So the same code serves files in a worktree and contents of a git tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from todo.errors import ErrorKind, TrackerError, invalid, usage
from todo.files import MAX_FILE_BYTES, NO_EDITS, Edits, Snapshot, Source
from todo.frontmatter import Document, decode, with_scalar
from todo.index import COMMENTS, Page
from todo.issue import (
    INDEX_NAME,
    NEAR,
    Issue,
    NewIssue,
    Status,
    arrows,
    check_keys,
    checked_id,
    file_name,
    find_cycle,
    id_of_file,
    is_issue_id,
    is_unwritten,
    next_id,
    next_sub_id,
    normalised_title,
    read_issue,
    sort_key,
)
from todo.render import bullet, check_new, issue_file, one_line

if TYPE_CHECKING:
    from datetime import date

_NEW_INDEX: Final = "# Issues\n"
_NEAREST: Final = 3


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A reason why work on an issue cannot begin; `issues` are the ones that block it."""

    kind: ErrorKind
    message: str
    issues: tuple[str, ...] = ()


class Tracker:
    """A tracker read from a source; every file is read once, when it is first needed.

    Args:
        source: The files.
        folder: What their folder is called, for whoever speaks of one of them.
        edits: What is to be changed of the files.
    """

    def __init__(self, source: Source, folder: str = "", edits: Edits = NO_EDITS) -> None:
        self.folder = folder
        self._source = Snapshot(source, edits)
        self._parsed: dict[str, tuple[Issue, Document]] = {}

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The ids of all issue files in the order of `sort_key`; the files may be broken."""
        return tuple(sorted(filter(None, map(id_of_file, self._source.names())), key=sort_key))

    def named(self, text: str) -> str:
        """Return the id that equals *text* but for case if there is exactly one, else *text* itself."""
        same = [issue_id for issue_id in self.ids if issue_id.casefold() == text.casefold()]
        return same[0] if len(same) == 1 else text

    def nearest(self, text: str) -> tuple[str, ...]:
        """Return the ids that are spelt like *text*, the most similar first."""
        from difflib import get_close_matches  # noqa: PLC0415  (only for who has mistyped an id)

        by_word = {issue_id.casefold(): issue_id for issue_id in self.ids}
        near = get_close_matches(text.casefold(), by_word, n=_NEAREST, cutoff=NEAR)
        return tuple(by_word[word] for word in near)

    def raw(self, name: str) -> bytes | None:
        """Return the content of a file of the tracker, None if it does not exist."""
        return self._source.read(name)

    def read(self, issue_id: str) -> Issue:
        """Return the issue with an id.

        Raises:
            TrackerError: usage for what is no id; issue_not_found; tracker_invalid; tracker_missing.
        """
        return self._open(issue_id)[0]

    def issues(self) -> list[Issue]:
        """Return all issues that can be read; files of other tools may lie beside them (`unreadable`).

        Raises:
            TrackerError: the tracker itself cannot be read.
        """
        return [found for found in map(self._read_or_error, self.ids) if isinstance(found, Issue)]

    def unreadable(self) -> list[TrackerError]:
        """Return why each of the other files is no issue; `lint` finds more.

        Raises:
            TrackerError: the tracker itself cannot be read.
        """
        return [found for found in map(self._read_or_error, self.ids) if isinstance(found, TrackerError)]

    def _read_or_error(self, issue_id: str) -> Issue | TrackerError:
        if not is_issue_id(issue_id):
            message = "Not the name of an issue file. Rename it to an id such as GAL-39.md, or move it elsewhere."
            return invalid(message, path=file_name(issue_id))
        try:
            return self.read(issue_id)
        except TrackerError as error:
            return error

    def children(self, issue_id: str) -> list[Issue]:
        """Return the sub-issues of an issue."""
        return [issue for issue in self.issues() if issue.parent == issue_id]

    def ready(self) -> list[Issue]:
        """Return the issues that are Todo and whose dependencies are all Done."""
        every = self.issues()
        done = {issue.id for issue in every if issue.status is Status.DONE}
        return [issue for issue in every if issue.status is Status.TODO and done.issuperset(issue.depends_on)]

    def prerequisites(self, issue_id: str) -> Obstacle | None:
        """Return the obstacle that keeps work on the issue from beginning, None if there is none.

        The first of these counts: issue_not_found, issue_not_todo, dependency_unmet, dependency_missing.

        Raises:
            TrackerError: the tracker is missing, or what had to be read of it is broken or has a misspelt key, or
                the issue has only the comments of the template.
        """
        try:
            issue = self.read(issue_id)
        except TrackerError as error:
            if error.kind is ErrorKind.ISSUE_NOT_FOUND:
                return Obstacle(error.kind, error.message, (issue_id,))
            raise
        if issue.status is not Status.TODO:
            message = f"{issue.id} is {issue.status}, not Todo. Choose another issue or set its status back."
            return Obstacle(ErrorKind.ISSUE_NOT_TODO, message, (issue.id,))
        check_keys(self._open(issue_id)[1])
        if is_unwritten(issue):
            wanted = "Write what is wanted, and a line for each acceptance criterion"
            raise invalid(f"{issue.id} has only the comments of the template. {wanted}.", path=file_name(issue_id))
        self._check_links(issue)
        missing = tuple(other for other in issue.depends_on if not self._exists(other))
        unmet = tuple(
            other for other in issue.depends_on if other not in missing and self.read(other).status is not Status.DONE
        )
        if unmet:
            message = f"{issue.id} depends on {', '.join(unmet)}, not Done yet. Do that first."
            return Obstacle(ErrorKind.DEPENDENCY_UNMET, message, unmet)
        if missing:
            message = (
                f"{issue.id} depends on {', '.join(missing)}, which does not exist. Create it or correct depends-on."
            )
            return Obstacle(ErrorKind.DEPENDENCY_MISSING, message, missing)
        return None

    def find_duplicate(self, title: str, parent: str | None = None) -> Issue | None:
        """Return an open issue whose title is the same but for case, punctuation and spacing; None if there is none.

        Looked for among the sub-issues of `parent`, or among all issues.
        """
        wanted = normalised_title(title)
        among = self.issues() if parent is None else self.children(parent)
        same = (issue for issue in among if normalised_title(issue.title) == wanted)
        return next((issue for issue in same if issue.status is not Status.DONE), None)

    def set_status(self, issue_id: str, status: Status, former: str | None = None) -> Edits:
        """Return the edits that give the issue a status and show it in README.md or in its parent.

        A line there with the *former* title gets the one of today.
        Never creates a file: without README.md only the issue changes.

        Raises:
            TrackerError: the issue, what it hangs on, or the file that lists it is missing or broken.
        """
        issue, document = self._open(issue_id)
        self._check_links(issue)
        texts: dict[str, str] = {}
        if issue.status is not status:
            texts[document.name] = with_scalar(document, "status", status.value)
        return self._edits(texts | self._listing(issue, status, former=former))

    def comment(self, issue_id: str, day: date, text: str) -> Edits:
        """Return the edits that add a dated comment at the end of the issue's Comments.

        Raises:
            TrackerError: the issue or what it hangs on is missing or broken; usage for an empty text.
        """
        issue, document = self._open(issue_id)
        self._check_links(issue)
        page = Page.of(document.name, document.text, document.body)
        return self._edits({document.name: page.appended(COMMENTS, bullet(day, text))})

    def create(self, new: NewIssue, edited: str | None = None) -> tuple[str, Edits]:
        """Return the id of a new issue, and the edits that add its file and list it.

        A sub-issue without an id gets PARENT.n, a top-level one the next number of the most used prefix.

        Args:
            new: What is filed.
            edited: What a person made of its `draft`; by default the draft itself.

        Raises:
            TrackerError: usage for what cannot be filed; issue_not_found, dependency_missing for what it names;
                tracker_invalid for what was edited.
        """
        issue_id, text = self.draft(new)
        name = file_name(issue_id)
        issue, document = read_issue((text if edited is None else edited).encode(), name)
        check_keys(document)
        category = one_line(new.category) if new.category and issue.parent is None else None
        listing = self._listing(issue, issue.status, category=category, create=True)
        return issue_id, self._edits({name: document.text} | listing)

    def draft(self, new: NewIssue) -> tuple[str, str]:
        """Return the id of a new issue and the text of its file, without filing it.

        Raises:
            TrackerError: as `create`.
        """
        check_new(new)
        if new.parent is not None:
            self._check_links(self.read(new.parent))
        missing = [other for other in new.depends_on if not self._exists(checked_id(other))]
        if missing:
            message = f"There is no issue {', '.join(missing)} to depend on."
            raise TrackerError(ErrorKind.DEPENDENCY_MISSING, message)
        issue_id = checked_id(new.id or self._free_id(new))
        taken = next((other for other in self.ids if other.lower() == issue_id.lower()), None)
        if taken is not None:
            raise usage(f"There is already an issue {taken}. Choose another id.")
        return issue_id, issue_file(issue_id, new)

    def with_edits(self, edits: Edits) -> Tracker:
        """Return the tracker with the edits applied; merge further edits by `edits.then(later)`."""
        return Tracker(self._source, self.folder, edits)

    def _open(self, issue_id: str) -> tuple[Issue, Document]:
        if issue_id not in self._parsed:
            name = file_name(checked_id(issue_id))
            content = self._source.read(name)
            if content is None:
                near = self.nearest(issue_id)
                hint = f"Did you mean {' or '.join(near)}?" if near else "Check the id, or create it."
                message = f"There is no issue {issue_id}. {hint}"
                raise TrackerError(ErrorKind.ISSUE_NOT_FOUND, message, path=name)
            if len(content) > MAX_FILE_BYTES:
                raise invalid(f"The file is larger than {MAX_FILE_BYTES} bytes.", path=name)
            self._parsed[issue_id] = read_issue(content, name)
        return self._parsed[issue_id]

    def _exists(self, issue_id: str) -> bool:
        return self._source.read(file_name(issue_id)) is not None

    def _check_links(self, issue: Issue) -> None:
        """Check that the issue's parents exist and that parents and dependencies form no cycle.

        Raises:
            TrackerError: tracker_invalid.
        """
        ancestors = [issue.id]
        while (parent := self.read(ancestors[-1]).parent) is not None:
            if parent in ancestors:
                cycle = arrows((*ancestors[ancestors.index(parent) :], parent))
                raise invalid(f"The parents run in a circle: {cycle}. Correct one.", path=file_name(ancestors[-1]))
            if not self._exists(parent):
                message = f"The parent {parent} does not exist. Create it or write `parent: null`."
                line = self._open(ancestors[-1])[1].line_of("parent")
                raise invalid(message, path=file_name(ancestors[-1]), line=line)
            ancestors.append(parent)
        found = find_cycle(issue.id, lambda one: filter(self._exists, self.read(one).depends_on))
        if found is not None:
            message = f"The dependencies run in a circle: {arrows(found)}. Correct depends-on in one of them."
            raise invalid(message, path=file_name(found[0]))

    def _listing(
        self,
        issue: Issue,
        status: Status,
        *,
        category: str | None = None,
        create: bool = False,
        former: str | None = None,
    ) -> dict[str, str]:
        """Return the new text, by name, of the file that lists the issue, with the status in its box."""
        if issue.parent is not None:
            document = self._open(issue.parent)[1]
            page = Page.of(document.name, document.text, document.body)
            return {document.name: page.listing(issue, status, former=former)}
        content = self._source.read(INDEX_NAME)
        if content is None and not create:
            return {}
        text = _NEW_INDEX if content is None else decode(content, INDEX_NAME)
        return {INDEX_NAME: Page.of(INDEX_NAME, text).listing(issue, status, category, former)}

    def _free_id(self, new: NewIssue) -> str:
        # A line whose file is gone still counts: an id is never given twice.
        if (parent := new.parent) is not None:
            document = self._open(parent)[1]
            listed = Page.of(document.name, document.text, document.body).sub_issues()
            return next_sub_id(parent, (*self.ids, *(entry.issue_id for entry in listed)))
        index = self._source.read(INDEX_NAME)
        lines = [] if index is None else Page.of(INDEX_NAME, decode(index, INDEX_NAME)).entries()
        return next_id((*self.ids, *(entry.issue_id for entry in lines)), new.prefix)

    def _edits(self, texts: dict[str, str]) -> Edits:
        contents = {name: text.encode() for name, text in texts.items()}
        return Edits(contents, {name: self._source.read(name) for name in contents})
