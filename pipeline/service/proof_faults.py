"""Holds the proofs in a person's report against the desk before it is handed in: what cannot be run proves nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.reports.schema_errors import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeline.backends.desk import Desk
    from pipeline.reports.proofs import Edit
    from pipeline.reports.reviews import CheckReview, SuiteJudgement


def proof_faults(desk: Desk, report: CheckReview | SuiteJudgement) -> list[Fault]:
    """Return what keeps proofs from being run, as far as it can be seen at the desk."""
    found: list[Fault] = []
    for number, finding in enumerate(report.findings):
        proof, at = getattr(finding, "proof", None), f"/findings/{number}/proof"
        if proof is None:
            continue
        if proof.test is not None and (desk.files / proof.test.path).exists():
            found.append(Fault(f"{at}/test/path", f"{proof.test.path} is there already: a proof is a new file."))
        if proof.edit is not None:
            found += [Fault(f"{at}/edit/{key}", said) for key, said in _of_edit(desk.files, proof.edit)]
    return found


def _of_edit(files: Path, edit: Edit) -> Iterator[tuple[str, str]]:
    try:
        content = (files / edit.path).read_bytes()
    except OSError:
        yield "path", f"{edit.path} is no file of the work."
        return
    if (times := content.count(edit.old.encode())) != 1:
        yield "old", f"It is {times} times in {edit.path}: give so much of the text that it is there once."
