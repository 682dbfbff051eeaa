"""Checks that @test changes only the insides of test regions in a Rust production file.

Two files with the same bytes and tokens outside of their regions are the same production code (ADR-8 of the founding
document). Only line numbers may move, as with every edit. Other languages have no such regions.

A region is known by the names of the modules around it and its own; of several with one name the first is the first.
What comes out is read again before it counts: its code outside of the regions must be the one source's, token by token,
and its regions the other's, byte by byte, so that a frozen test is still the same test.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from posixpath import commonprefix
from typing import TYPE_CHECKING, Final

from pipeline.testing.languages.rust.regions import Module, RustFile, SourceFault, line_of, read_rust
from pipeline.testing.languages.sources import Unspliced

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.testing.languages.rust.sources import Inside


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
    return len(commonprefix((one, other)))


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
    from pipeline.testing.languages.rust import sources  # noqa: PLC0415  (a shared library that only Rust projects need)

    file = read_rust(source)
    if isinstance(file, SourceFault):
        return sources.Inside()
    modules = sources.modules(sources.parse(source))
    return sources.look_inside(modules[file.inside(region)] for region in file.regions)


Key = tuple[tuple[bytes, ...], int]
"""The names of the modules down to a region, and the number of earlier modules with that name."""

_MOST: Final = 1000
"""The most regions and modules that are spliced: the work grows with the square, and people write fewer."""


def splice(tests_from: bytes, production_from: bytes) -> bytes | Unspliced:
    """Return *production_from* with the test regions of *tests_from* in place of its own.

    A region that both have keeps its place. One that only the tests have is put where it stands there: behind the
    region or module that it follows, before the one that follows it, else at the end of its module. One that only the
    production has is left out. The attributes of a region are part of it.

    Nothing is guessed: where a reader is not certain of the regions of either source, or the production has no module
    of the name that a region stands in, the answer is `Unspliced`. Never raises.
    """
    if only_test_regions(RUST, production_from, tests_from):
        return tests_from  # byte for byte what was judged, blank lines included
    tests, production = read_rust(tests_from), read_rust(production_from)
    if isinstance(tests, SourceFault):
        return Unspliced(f"line {line_of(tests_from, tests.at)} of the file with the tests {tests.why}")
    if isinstance(production, SourceFault):
        return Unspliced(f"line {line_of(production_from, production.at)} of the production file {production.why}")
    if max(len(file.regions) + len(file.around) for file in (tests, production)) > _MOST:
        return Unspliced(f"there are more than {_MOST} modules in it")
    source, target = _Plan(tests), _Plan(production)
    edits = _edits(source, target)
    if isinstance(edits, Unspliced):
        return edits
    result = _applied(production_from, edits)
    return result if _holds(result, source, target) else Unspliced("the two texts cannot be put together for certain")


def regions_of(source: bytes) -> dict[str, bytes] | Unspliced:
    """Return the test regions of a source with their attributes, by name (`inner::tests`; a second one `tests (2)`)."""
    file = read_rust(source)
    if isinstance(file, SourceFault):
        return Unspliced(f"line {line_of(source, file.at)} {file.why}")
    return {_name(key): text for key, text in _Plan(file).texts.items()}


def _name(key: Key) -> str:
    path, before = key
    name = b"::".join(path).decode("utf-8", "replace")
    return name if before == 0 else f"{name} ({before + 1})"


_Edit = tuple[int, int, bytes]
"""The start and end of a replacement in the production file, and what takes its place."""


@dataclass(frozen=True)
class _Plan:
    """A source with its regions and modules by key."""

    file: RustFile

    @cached_property
    def regions(self) -> dict[Key, Module]:
        return {key: region for region, key in zip(self.file.regions, _keys(self.file.regions), strict=True)}

    @cached_property
    def modules(self) -> dict[Key, Module]:
        return {key: module for module, key in zip(self.file.around, _keys(self.file.around), strict=True)}

    @cached_property
    def texts(self) -> dict[Key, bytes]:
        return {key: self.file.source[slice(*self.span(region))] for key, region in self.regions.items()}

    def span(self, module: Module) -> tuple[int, int]:
        tokens = self.file.tokens.all
        return tokens[module.first].start, tokens[module.closing].end

    @cached_property
    def parents(self) -> dict[int, Key | None]:
        """Return the innermost module around each region and module (None at the top level), by its first token."""
        found: dict[int, Key | None] = {}
        around: list[tuple[Key, Module]] = []
        for module, key in sorted(
            [(module, key) for key, module in (*self.regions.items(), *self.modules.items())],
            key=lambda pair: pair[0].first,
        ):
            while around and around[-1][1].closing < module.first:
                around.pop()
            found[module.first] = around[-1][0] if around else None
            if not module.is_region:
                around.append((key, module))
        return found

    @cached_property
    def landmarks(self) -> dict[Key | None, list[tuple[frozenset[Key], tuple[int, int]]]]:
        """Return the regions and modules directly in each module, each with the keys of its regions and its place."""
        found: dict[Key | None, list[tuple[frozenset[Key], tuple[int, int]]]] = defaultdict(list)
        for key, region in self.regions.items():
            found[self.parents[region.first]].append((frozenset({key}), self.span(region)))
        for module in self.modules.values():
            inside = (key for key, region in self.regions.items() if module.opening < region.first < module.closing)
            found[self.parents[module.first]].append((frozenset(inside), self.span(module)))
        return found

    def indentation(self, region: Module) -> bytes:
        start = self.file.start(region)
        line = self.file.source[self.file.source.rfind(b"\n", 0, start) + 1 : start]
        return line if not line.strip(_BLANKS) else b""

    def production(self) -> list[bytes]:
        """Return the tokens outside of regions and their attributes."""
        inside = {at for region in self.file.regions for at in range(region.first, region.closing + 1)}
        return [token.text for at, token in enumerate(self.file.tokens.all) if at not in inside]


def _keys(modules: tuple[Module, ...]) -> Iterator[Key]:
    seen: Counter[tuple[bytes, ...]] = Counter()
    for module in modules:
        yield module.path, seen[module.path]
        seen[module.path] += 1


def _edits(source: _Plan, target: _Plan) -> list[_Edit] | Unspliced:
    edits: list[_Edit] = []
    for key, region in target.regions.items():
        start, end = target.span(region)
        text = source.texts.get(key)
        edits.append((start, end, text) if text is not None else _removal(target.file.source, start, end))
    order = list(source.regions)
    for at, key in enumerate(order):
        if key in target.regions:
            continue
        parent = source.parents[source.regions[key].first]
        if parent is not None and parent not in target.modules:
            name = b"::".join(parent[0]).decode("utf-8", "replace")
            return Unspliced(f"the production file has no module {name}, which {_name(key)} stands in")
        edits.append(_insertion(source, target, key, parent, (frozenset(order[:at]), frozenset(order[at + 1 :]))))
    return edits


def _removal(text: bytes, start: int, end: int) -> _Edit:
    """Return the edit that removes a region, with the blank lines before it if it has lines of its own."""
    behind = text[end:].lstrip(b" \t")
    if behind and not behind.startswith((b"\n", b"\r\n")):
        return start, end, b""
    kept = text[:start].rstrip(_BLANKS)
    return len(kept), end, b"" if behind or not kept else b"\n"


def _insertion(
    source: _Plan, target: _Plan, key: Key, parent: Key | None, around: tuple[frozenset[Key], frozenset[Key]]
) -> _Edit:
    """Return the edit that inserts a region; `around` are the regions before and after it in its own file."""
    before, behind = around
    landmarks = target.landmarks.get(parent, [])
    text, indentation = source.texts[key], source.indentation(source.regions[key])
    kept = frozenset(source.regions)
    ends = [end for keys, (_, end) in landmarks if keys & kept & before]
    starts = [start for keys, (start, _) in landmarks if keys & kept & behind]
    if ends:
        return max(ends), max(ends), b"\n\n" + indentation + text
    if starts:
        return min(starts), min(starts), text + b"\n\n" + indentation
    tokens = target.file.tokens.all
    end = len(target.file.source) if parent is None else tokens[target.modules[parent].closing].start
    head = target.file.source[:end]
    line = b"" if not head or head.rstrip(b" \t").endswith(b"\n") else b"\n"
    return end, end, line + (b"\n" if head else b"") + indentation + text + b"\n"


def _applied(text: bytes, edits: list[_Edit]) -> bytes:
    pieces: list[bytes] = []
    at = 0
    for start, end, new in sorted(edits, key=itemgetter(0, 1)):
        pieces += [text[at:start], new]
        at = max(at, end)
    return b"".join([*pieces, text[at:]])


def _holds(result: bytes, source: _Plan, target: _Plan) -> bool:
    """Return whether the result has the regions of *source* and the production of *target*."""
    file = read_rust(result)
    if isinstance(file, SourceFault):
        return False
    made = _Plan(file)
    return made.texts == source.texts and made.production() == target.production()
