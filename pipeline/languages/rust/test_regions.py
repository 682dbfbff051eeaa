"""Checks that @test changes only the insides of test regions in a Rust production file.

Two files with the same bytes and tokens outside of their regions are the same production code (ADR-8 of the founding
document). Only line numbers may move, as with every edit. Other languages have no such regions.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from pipeline.languages.rust.regions import read_rust
from pipeline.languages.rust.tokens import SourceFault, line_of

if TYPE_CHECKING:
    from pipeline.languages.rust.regions import RustFile
    from pipeline.languages.rust.tree import Inside

RUST: Final = ".rs"

_BLANKS: Final = b" \t\r\n"
_FORM: Final = "`#[cfg(test)]` and `mod name { ... }`"


def only_test_regions(path: str, old: bytes, new: bytes) -> bool:
    """Return whether `old` and `new` differ in nothing but Rust test regions."""
    return region_fault(path, old, new) is None


def region_fault(path: str, old: bytes, new: bytes) -> str | None:
    """Return a sentence on the first other difference, with its line in the new file; None if there is none.

    Allowed are edits inside regions that both files have, and one whole new region: blanks, then
    `#[cfg(test)] mod name { ... }`, then blanks, put in at one place between two items.
    """
    if not path.endswith(RUST):
        return f"{path!r} is not Rust: no other language has test regions in production files"
    after, before = read_rust(new), read_rust(old)
    if isinstance(after, SourceFault):
        return f"line {line_of(new, after.at)} {after.why}"
    if isinstance(before, SourceFault):
        return f"line {line_of(old, before.at)} of the file as it was {before.why}"
    fault = _difference(before, after) or _new_reach(before, after)
    return f"line {line_of(new, fault.at)} {fault.why}" if fault else None


def interesting(old: bytes, new: bytes) -> tuple[str, ...]:
    """Return notes for @check about an edit that `region_fault` accepts: clauses, without the path."""
    before, after = _contents(old), _contents(new)
    gone = sorted(before.tests - after.tests)
    silenced = sorted((after.ignored - before.ignored) & before.tests)
    impls = sorted(after.foreign_impls - before.foreign_impls)
    return (
        *(f"the test {name} is gone" for name in gone),
        *(f"the test {name} is ignored from now on" for name in silenced),
        *(f"`{head}` in a test region changes production types in test builds only" for head in impls),
    )


def _difference(before: RustFile, after: RustFile) -> SourceFault | None:
    """Return the first difference outside of the regions, None if there is none."""
    old, new = before.outside(), after.outside()
    if old == new or _has_one_more_region(before, after):
        return None
    if len(new) < len(old):
        why = f"is where a test module is missing or no longer has the form {_FORM}; only its inside may change"
    elif len(new) > len(old):
        why = f"differs outside of test modules; one new one, {_FORM}, may be put between two items, and nothing else"
    else:
        why = f"differs outside of test modules, which have the form {_FORM} with no other condition"
    return SourceFault(_first_difference(old, after), why)


def _has_one_more_region(before: RustFile, after: RustFile) -> bool:
    """Return whether the only difference outside of regions is a new, bare region between two items."""
    old, new = before.outside(), after.outside()
    place = next((number for number, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), 0)
    if len(new) != len(old) + 1 or old[place + 1 :] != new[place + 2 :]:
        return False
    region = after.regions[place]
    if not region.is_bare or after.is_before_inner(region):
        return False
    head = after.inside(region)[0] - after.start(region)
    if not _is_inserted(old[place], new[place][:-head], new[place + 1].removeprefix(b"}")):
        return False
    # Bytes alone would let a new line end a comment early, and turn the rest of it into code.
    return before.code() == after.code(without=region)


def _is_inserted(old: bytes, left: bytes, right: bytes) -> bool:
    """Return whether `old` equals `left` and `right` together, but for blanks at one place."""
    start, end = len(left.rstrip(_BLANKS)), len(old) - len(right.lstrip(_BLANKS))
    if start > end or old[:start] != left[:start] or not right.endswith(old[end:]):
        return False
    between = old[start:end]
    kept_left = _common(between, left[start:])
    kept_right = _common(between[::-1], right[: len(right) - len(old[end:])][::-1])
    return not between.strip(_BLANKS) and kept_left + kept_right >= len(between)


def _common(one: bytes, other: bytes) -> int:
    """Return the length of the common beginning."""
    return next(
        (index for index, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )


def _first_difference(old: list[bytes], after: RustFile) -> int:
    """Return the place, in bytes of the new file, of the first difference outside of regions."""
    starts = [0, *(after.inside(region)[1] for region in after.regions)]
    new = after.outside()
    for start, one, other in zip(starts, old, new, strict=False):
        if one != other:
            return min(start + _common(one, other), max(len(after.source) - 1, 0))
    return starts[min(len(old), len(new)) - 1]


def _new_reach(before: RustFile, after: RustFile) -> SourceFault | None:
    """Return new code that reaches beyond a region, None if there is none; earlier code stays allowed."""
    known = Counter(what for what, _ in before.reaches())
    for what, at in after.reaches():
        if not known[what]:
            return SourceFault(at, f"has `{what}` in a test module, which reaches beyond it; leave it out")
        known[what] -= 1
    return None


def _contents(source: bytes) -> Inside:
    """Return the tests and impls in a source's regions, empty if these are uncertain."""
    from pipeline.languages.rust import sources, tree  # noqa: PLC0415  (a shared library that only Rust projects need)

    file = read_rust(source)
    if isinstance(file, SourceFault):
        return tree.Inside()
    modules = tree.modules(sources.parse(source))
    return tree.look_inside(modules[file.inside(region)] for region in file.regions)
