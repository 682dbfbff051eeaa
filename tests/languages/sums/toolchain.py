"""Runs checks, and scaffolds sums: the `Toolchain` of this language."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

from languages.sums.texts import TODO, Sum, checks, sums

from pipeline.judge.evidence import observation as seen
from pipeline.judge.evidence.observation import Ended, Fault, Frame, Observation, TestRecord
from pipeline.judge.evidence.red_classes import Symbol
from pipeline.testing.languages.protocol import Environment
from pipeline.testing.languages.sources.stubs import OldBodies, Stubbed, StubFault
from pipeline.testing.languages.toolchain import Toolchain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from languages.sums.texts import Check

    from pipeline.testing.languages.protocol import Lookup, Measurement

Sums = dict[str, tuple[str, Sum]]
"""Each function by its name, with its file."""


class SumsToolchain(Toolchain):
    """The `Toolchain` of sums."""

    name = "sums"
    sources: tuple[str, ...] = (".sum",)
    stub = TODO
    stub_like = re.compile(r"= todo$", re.MULTILINE)
    install_hint = "there is nothing to install"

    def detect(self, worktree: Path) -> bool:
        return (worktree / "sums.project").is_file()

    async def find_environment(self, lookup: Lookup) -> Environment:
        return Environment(command=("sums",), mounts=(), prefix=lookup.worktree, versions=("sums 1",))

    async def run_tests(self, asked: Measurement) -> Observation:
        view = asked.view
        texts = {
            path.relative_to(view.host).as_posix(): path.read_text()
            for path in sorted(view.host.rglob("*.*"))
            if path.suffix in {".sum", ".check"}
        }
        errors: list[seen.CollectionError] = []
        known: Sums = {}
        records: dict[str, TestRecord] = {}
        tests = {path: text for path, text in texts.items() if path.endswith(".check")}
        for path, text in texts.items():
            try:
                if path in tests:
                    found = [_record(path, check) for check in checks(text)]
                    records |= {record.id: record for record in found}
                else:
                    known |= {one.name: (path, one) for one in sums(text).values()}
            except ValueError as error:
                errors.append(
                    seen.CollectionError(path=path, fault=_fault("SyntaxError", str(error), Frame(path=path)))
                )
        for path in {record.path for record in records.values()}:
            for check in checks(texts[path]):
                record = records[f"{path}::{check.test}"]
                if asked.selects(record.id, record.path):
                    records[record.id] = _run(record, check, known, trace=asked.trace)
        return Observation(
            state=seen.RunState.COMPLETE,
            records=records,
            collection_errors=tuple(errors),
            files={path: hashlib.sha256(text.encode()).hexdigest() for path, text in tests.items()},
            layout=seen.Layout(python_files=("*.check",), collected=frozenset(tests)),
            command=("sums",),
        )

    async def check_types(self, asked: Measurement) -> Observation:
        return await self.run_tests(asked)

    def is_test_path(self, path: str, observation: Observation) -> bool:  # noqa: ARG002
        return path.endswith(".check")

    def is_control_path(self, path: str) -> bool:
        return path == "sums.project"

    def stub_symbols(self, files: Mapping[str, str], symbols: Sequence[Symbol]) -> Stubbed:
        names = {symbol.name for symbol in symbols}
        done = {
            path: re.sub(rf"(?m)^({'|'.join(names)}) (\w+) = .+$", rf"\1 \2 = {TODO}", files[path]) for path in files
        }
        there = {name for text in files.values() for name in sums(text)}
        return Stubbed(done, tuple(symbol for symbol in symbols if symbol.name not in there))

    def introduced(self, before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Symbol, ...]:
        new = ((path, name) for path, text in after.items() for name in sums(text))
        return tuple(Symbol(path, name) for path, name in new if name not in sums(before.get(path, "")))

    def with_old_bodies(self, before: Mapping[str, str], after: Mapping[str, str], *, kept: bool) -> OldBodies:
        del before, after, kept
        return OldBodies({}, ())

    def stub_faults(
        self, before: Mapping[str, str], after: Mapping[str, str], symbols: Sequence[Symbol]
    ) -> tuple[StubFault, ...]:
        names, found = {symbol.name for symbol in symbols}, list[StubFault]()
        for path, text in after.items():
            old = sums(before.get(path, ""))
            for name, one in sums(text).items():
                if one.body != TODO and (name in names or name not in old):
                    found.append(StubFault(path, one.line, f"{name} has a body that is no stub"))
        there = {name for text in after.values() for name in sums(text)}
        found += [
            StubFault(symbol.path, 0, f"{symbol.name} is missing") for symbol in symbols if symbol.name not in there
        ]
        return tuple(found)


def _record(path: str, check: Check) -> TestRecord:
    entry = f"{path}::{check.test}"
    sha256 = hashlib.sha256(check.text.encode()).hexdigest()
    return TestRecord(id=entry, function=entry, path=path, region_sha256=sha256)


def _run(record: TestRecord, check: Check, known: Sums, *, trace: bool) -> TestRecord:
    here = Frame(path=record.path, line=check.line, function=check.test)
    path, one = known.get(check.name, ("", None))
    reach = seen.Reach(functions=(f"{path}::{check.name}",) if one is not None else ()) if trace else None
    fault: Fault | None = None
    if one is None:
        missing = seen.Missing(name=check.name)
        fault = _fault("AttributeError", f"there is no {check.name}", here).model_copy(update={"missing": missing})
    else:
        try:
            value = one.of(check.given)
            if value != check.expected:
                fault = _fault("AssertionError", f"{check.name} {check.given} is {value}, not {check.expected}", here)
        except (NotImplementedError, ValueError) as error:
            there = Frame(path=path, line=one.line, function=one.name)
            fault = _fault(type(error).__name__, str(error), here, there)
    outcome = Ended.PASSED if fault is None else Ended.FAILED
    return record.model_copy(update={"outcome": outcome, "phase": "call", "fault": fault, "reach": reach})


def _fault(kind: str, message: str, *frames: Frame) -> Fault:
    return Fault(chain=(seen.Raised(kind=kind, message=message),), frames=frames)


TOOLCHAIN: Final = SumsToolchain()
