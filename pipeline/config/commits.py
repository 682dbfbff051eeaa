"""`[commits]`: the form that a repository asks of commit messages, built from ours, and held against its pattern."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from pipeline.config.tables import Table

TYPES: Final = ("feat", "fix", "test", "docs", "refactor", "chore", "style", "chore(todo)")
"""The types of our commits."""
LONGEST: Final = 72
_SAMPLE: Final = "take what it says"
_TYPED: Final = re.compile(r"(build|chore|ci|docs|feat|fix|perf|refactor|revert|style|test): +(?=\S)")


def _subject(text: str) -> str:
    if "{title}" not in text or "\n" in text:
        raise ValueError("accepted is one line with {title} in it; {type} and {issue} may stand there, too")
    return text


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"this is no regular expression: {error}") from None
    return text


def _footer(text: str) -> str:
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*: \S.*", text) is None:
        raise ValueError('accepted is a line such as "Refs: {issue}"')
    return text


class Commits(Table):
    """`[commits]`: the form of the commits' messages. `hooks` are those that you know are not run."""

    sign_off: Annotated[bool, Field(description="Signed-off-by, in the name that git commits with")] = False
    subject: Annotated[
        str,
        AfterValidator(_subject),
        Field(
            description="The form of subjects; {type}, {title} and {issue} are filled in. A type that a title begins "
            "with counts; else an issue with the label bug is a `fix`"
        ),
    ] = "{type}: {title}"
    pattern: Annotated[
        Annotated[str, AfterValidator(_pattern)] | None, Field(description="What each subject has to match")
    ] = None
    footers: Annotated[
        tuple[Annotated[str, AfterValidator(_footer)], ...], Field(description="Lines below redfirst's own trailers")
    ] = ()
    hooks: Annotated[tuple[str, ...], Field(description="Hooks of git that you know are not run")] = ()


def styled(message: str, rules: Commits, issue: str, who: str) -> str:
    """Return a message in the form that is asked for; its last part is trailers, and others are put below these.

    Args:
        message: `type: title`, what else is said, trailers.
        rules: `[commits]`.
        issue: The ticket: the issue, or the run where there is none.
        who: The name and address that git commits with.
    """
    subject, _, rest = message.partition("\n")
    kind, _, title = subject.partition(": ")
    more = [line.replace("{issue}", issue) for line in rules.footers]
    more += [f"Signed-off-by: {who}"] if rules.sign_off else []
    return "\n".join((subject_as(rules, kind, title, issue), rest + "".join(map("{}\n".format, more))))


def subject_as(rules: Commits, kind: str, title: str, issue: str) -> str:
    """Return a subject; a title for which there is no room is cut."""
    around = rules.subject.replace("{type}", kind).replace("{issue}", issue)
    room = max(1, LONGEST - len(around.replace("{title}", "")))
    if len(title) > room:
        end = title.rfind(" ", 0, room - 2)
        title = title[: end if end > room // 2 else max(1, room - 3)].rstrip(" ,;:.-") + "..."
    return around.replace("{title}", title)


def split_type(title: str) -> tuple[str | None, str]:
    """Return the type of Conventional Commits that a title begins with, None without one, and the rest of the title."""
    words = title.strip()
    found = _TYPED.match(words)
    return (None, words) if found is None else (found[1], words[found.end() :])


def misfits(rules: Commits, issue: str, titles: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the subjects that the pattern would refuse: of each type, with each title, or with a sample."""
    if rules.pattern is None:
        return ()
    found = [split_type(title) for title in titles or (_SAMPLE,)]
    tried = [subject_as(rules, kind, rest, issue) for given, rest in found for kind in ((given,) if given else TYPES)]
    return tuple(subject for subject in tried if re.search(rules.pattern, subject) is None)
