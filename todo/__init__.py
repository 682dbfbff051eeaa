"""A tracker of issues in a folder of Markdown files (contract 3): read, list, change exactly, lint.

Nothing here knows of runs, agents or git. Operations return edits; `write_edits` writes them.
"""

from __future__ import annotations

from todo.errors import ErrorKind, TrackerError
from todo.files import NO_EDITS, Edits, FolderSource, MappingSource, Source, write_edits
from todo.issue import INDEX_NAME, Issue, NewIssue, Status, checked_id, file_name, is_issue_id
from todo.lint import Problem, Rule, lint
from todo.tracker import Obstacle, Tracker

__all__ = [
    "INDEX_NAME",
    "NO_EDITS",
    "Edits",
    "ErrorKind",
    "FolderSource",
    "Issue",
    "MappingSource",
    "NewIssue",
    "Obstacle",
    "Problem",
    "Rule",
    "Source",
    "Status",
    "Tracker",
    "TrackerError",
    "checked_id",
    "file_name",
    "is_issue_id",
    "lint",
    "write_edits",
]
