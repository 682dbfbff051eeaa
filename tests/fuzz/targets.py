"""What is fuzzed. Each target takes any bytes and raises AssertionError if the program did something wrong with them.

The bytes spell texts made of pieces (`spelt`), which get far into a parser, or are taken as they are.
"""

from __future__ import annotations

import json
import re
import unicodedata
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import yaml
from fuzz import judges, rustc
from fuzz.pieces import COMMAND, FRONT_MATTER, PATH, REPORT, ROLE, Soup
from fuzz.rust_soup import edit

from pipeline.judge.policy.commands import judge_command
from pipeline.judge.policy.paths import collision_key, malformed, protected
from pipeline.judge.policy.rights import Action, Change, ChangeKind, Grant, TestScope, judge
from pipeline.judge.policy.roles import ContractError, Writes, parse_role
from pipeline.judge.reports.decode import Malformed, Missing, decode_object
from pipeline.judge.reports.kinds import KINDS
from pipeline.judge.reports.parse import extract_report, parse_report
from pipeline.testing.languages.rust.test_regions import interesting, region_fault
from pipeline.testing.languages.table import listed_commands
from todo.errors import TrackerError
from todo.frontmatter import parse, plain_data

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_production = lru_cache(maxsize=256)(rustc.production_syntax)


_ASKED: Final = [
    (row.name, role, question)
    for row in KINDS.values()
    for role in row.roles
    for question in (row.by_question or (None,))
]
_HEAD: Final = re.compile(r"\ufeff?---\n(.*?)^---(?:\n|\Z)", re.DOTALL | re.MULTILINE)


def spelt(data: bytes, soup: Soup, *, errors: str = "replace") -> str:
    """Return a text: pieces that the bytes name, in a frame that the first one names, or all bytes as they are."""
    if data[:1] and data[0] % 2:
        return data[1:].decode("utf-8", errors)
    before, after = soup.frames[data[0] // 2 % len(soup.frames)] if data else ("", "")
    return before + "".join(soup.pieces[byte % len(soup.pieces)] for byte in data[1:]) + after


def regions(data: bytes) -> None:
    """An edit that the region rule accepts is the same production code for rustc, or no code with tests either."""
    made = edit(data)
    if region_fault("src/lib.rs", made.old, made.new) is not None:
        return
    interesting(made.old, made.new)
    before = _production(made.old, made.edition)
    if before is None or made.old == made.new:
        return
    after = _production(made.new, made.edition)
    if after is None:
        assert rustc.syntax_with_tests(made.new, made.edition) is None, made
    else:
        assert before == after, made


def paths(data: bytes) -> None:
    """A new path that is admitted is one that git takes on every platform; every change has a ruling."""
    path = spelt(data, PATH, errors="surrogateescape")
    scope = TestScope(files=(Grant(path, Action.CREATE),), folders=("tests",))
    for writes in Writes:
        for kind in ChangeKind:
            judge(writes, Change(path, kind, collides_with=None), (Grant(path, Action.CREATE),), scope)
    twin = unicodedata.normalize("NFD", path).upper()
    if _caseless(path) == _caseless(twin):
        assert collision_key(path) == collision_key(twin), path
    if judge(Writes.TASK, Change(path, ChangeKind.ADDED), (Grant(path, Action.CREATE),)).allowed:
        assert protected(path) is None, path
        assert malformed(path) is None, path
        assert judges.git_takes(path), path


def commands(data: bytes) -> None:
    """A command that is allowed is, for bash, the same words and nothing else."""
    text = spelt(data, COMMAND)
    ruling = judge_command(text, listed_commands(), shell=True)  # noqa: S604  (the role's permission; no process is started)
    assert not judge_command(text, (), shell=False).allowed, text
    assert ruling.allowed == bool(ruling.argv), text
    assert ruling.rule, text
    assert ruling.why, text
    if ruling.allowed:
        assert judges.bash_words(text) == ruling.argv, text
        assert "=" not in ruling.argv[0], text


def front_matter(data: bytes) -> None:
    """Front matter of an issue is read as PyYAML reads it, if both take it: libyaml knows more places for tabs."""
    text = spelt(data, FRONT_MATTER)
    for whole in (text, f"---\n{text}---\n"):
        with suppress(TrackerError):
            document = parse(whole, "GAL-1.md")
            ours = {key: plain_data(node) for key, node in document.values.items()}
            with suppress(yaml.YAMLError):
                assert ours == yaml.load(document.front, Loader=yaml.BaseLoader), whole  # noqa: S506  (strings only)


def roles(data: bytes) -> None:
    """A role's contract says what PyYAML reads in it, and nothing else."""
    text = spelt(data, ROLE)
    for whole in (text, f"---\n{text}---\nprompt\n"):
        try:
            spec = parse_role(whole, "test")
        except ContractError:
            continue
        head = _HEAD.match(whole.replace("\r\n", "\n").replace("\r", "\n"))
        assert head is not None, whole
        try:
            said: Mapping[str, object] = yaml.load(head[1], Loader=yaml.BaseLoader)  # noqa: S506  (strings only)
        except yaml.YAMLError:  # it refuses a tab at the end of a line, which YAML allows
            continue
        assert (said["name"], said["writes"]) == (spec.name, spec.writes), whole
        assert (said["shell"] == "true", said.get("test_regions") == "true") == (spec.shell, spec.test_regions), whole
        assert (said["network"], said["description"]) == (spec.network, spec.description), whole


def reports(data: bytes) -> None:
    """Any bytes are a report or a sentence; what `json` refuses is no report, and what is one is what `json` reads."""
    raw = spelt(data, REPORT, errors="surrogateescape").encode("utf-8", "surrogateescape")
    found = decode_object(raw)
    try:
        value: object = json.loads(raw)
    except (ValueError, RecursionError):
        assert isinstance(found, Malformed), raw
    else:
        assert isinstance(found, Malformed) or found == value, raw
    for file in (None, b" \n", raw):
        extracted = extract_report(file, raw + b"\nbye\n", counts=lambda _: True)
        assert isinstance(extracted, dict | Missing | Malformed), raw
    for kind, role, question in _ASKED:
        parsed = parse_report(kind, role, question, raw)
        assert isinstance(parsed, Malformed) or not isinstance(found, Malformed), raw


def _caseless(text: str) -> str:
    """Return the key of Unicode's canonical caseless match (3.13, D145)."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", text).casefold())


TARGETS: Final[Mapping[str, Callable[[bytes], None]]] = {
    target.__name__: target for target in (regions, paths, commands, front_matter, roles, reports)
}
