"""What pages are made of: texts line by line, patches with their tests, the picture of a run's way."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from runs.real import begin, event, make_repository

from pipeline.app.documents import DiffFile
from pipeline.faces.console.acts import answers_of
from pipeline.faces.console.patches import TestFacts as Facts
from pipeline.faces.console.patches import files_of
from pipeline.faces.console.picture import TALL, WIDE, drawn, way_of
from pipeline.faces.console.texts import clipped, linked, markdown_lines, printed, shown
from pipeline.matrix.routing.plain_words import PHASES, TOLD, phase_with, usual_next
from pipeline.run.gates import GateAnswer
from pipeline.vocabulary import Signal, Step

if TYPE_CHECKING:
    from pathlib import Path

PATCH = """\
diff --git a/a.py b/a.py
index 1..2 100644
--- a/a.py
+++ b/a.py
@@ -1,2 +1,3 @@ def one():
 same
-old
+new
+++ plus
\\ No newline at end of file
diff --git a/tests/t.py b/tests/t.py
new file mode 100644
--- /dev/null
+++ b/tests/t.py
@@ -0,0 +1,2 @@
+def test_two():
+    test_two_and_more()
"""


def facts(id_: str) -> Facts:
    return Facts(id=id_, task="1", red="ASSERTION_MISMATCH", message="1 != 2", legal=True, green=True)


def test_markdown_is_told_line_by_line_and_nothing_of_it_is_markup() -> None:
    text = "# Plan\n\n- `a` **b** <i>c</i>\n  - deeper\n1. one\n> said\n```py\n# no heading\n```\n[x](http://y) ![z](q)"
    found = markdown_lines(text)
    assert [(line.number, line.kind, line.indent) for line in found] == [
        (1, "h1", 0),
        (2, "blank", 0),
        (3, "item", 0),
        (4, "item", 1),
        (5, "item", 0),
        (6, "quote", 0),
        (7, "fence", 0),
        (8, "code", 0),
        (9, "fence", 0),
        (10, "text", 0),
    ]
    assert found[2].html == "<code>a</code> <strong>b</strong> &lt;i&gt;c&lt;/i&gt;"
    assert found[-1].html == "[x](http://y) ![z](q)"
    assert len(markdown_lines("x\n" * 100_000)) == 3001


def test_hidden_characters_are_to_be_seen_and_long_texts_end() -> None:
    assert shown("a\u202e<b>\n") == 'a<span class="escape">\\u202e</span>&lt;b&gt;\n'
    assert printed("a\x1b[2J") == "a\\x1b[2J"
    assert clipped("x" * 5000) == "x" * 4000 + " ... (1,000 characters more)"


def test_names_of_files_lead_to_them_and_nothing_else_does() -> None:
    names = {"plan.md", "reviews/plan-1.md"}
    found = linked("See plan.md, reviews/plan-1.md: xplan.md <b>, plan.mdx.", names, "/runs/a")
    assert re.findall('href="([^"]+)"', found) == ["/runs/a/files/plan.md", "/runs/a/files/reviews/plan-1.md"]
    assert re.sub("</?a[^>]*>", "", found) == "See plan.md, reviews/plan-1.md: xplan.md &lt;b&gt;, plan.mdx."
    assert linked("x" * 100_000, names, "/runs/a") == shown("x" * 100_000), "at once, however long it is"


def test_a_patch_is_files_hunks_and_lines_with_tests_where_they_are_defined() -> None:
    changed = [DiffFile(path="a.py", added=2, deleted=1), DiffFile(path="tests/t.py", added=2, deleted=0)]
    (first, second), left_out = files_of(changed, PATCH, [facts("tests/t.py::test_two"), facts("elsewhere::x")])
    assert left_out == 0
    assert first.hunks[0][0] == "def one():"
    assert [(line.before, line.after, line.kind, line.text) for line in first.hunks[0][1]] == [
        (1, 1, "same", "same"),
        (2, None, "del", "old"),
        (None, 2, "add", "new"),
        (None, 3, "add", "++ plus"),
        (None, None, "note", " No newline at end of file"),
    ]
    assert [[test.name for test in line.tests] for line in second.hunks[0][1]] == [["test_two"], []]


@pytest.mark.parametrize(
    ("id_", "name"),
    [
        ("tests/t.py::test_a[1-2]", "test_a"),
        ("t.rs::module::works", "works"),
        ("src/x.test.ts > group > says so", "says so"),
        ("pkg/TestA/sub", "sub"),
    ],
)
def test_the_name_of_a_test_as_it_stands_in_its_file(id_: str, name: str) -> None:
    assert facts(id_).name == name


@pytest.mark.slow
def test_the_picture_says_where_a_run_stands_and_how_often_it_went_back(tmp_path: Path) -> None:
    run = begin(make_repository(tmp_path / "project"), "run-GAL-1", gates=("plan",))
    for signal in (Signal.OK, Signal.CLAIMED, Signal.HYGIENE, Signal.DRAFTED, Signal.NEEDS_WORK):
        run.decide(event(signal))
    way = way_of(run)
    assert (dict(way.back), dict(way.again), way.gates) == ({(3, 2): 1}, {2: 1}, {3: "ahead"})
    for sheet, name in ((WIDE, "wide"), (TALL, "tall")):
        picture = drawn(way, sheet, name)
        assert "3 Plan: now" in picture
        assert "back from 4 Review plan to 3 Plan, 1 times" in picture
        assert len(re.findall('class="phase (?:done|now|ahead)"', picture)) == len(PHASES)
        assert 'class="back"' in picture
        assert "style=" not in picture


def test_every_step_is_told_and_is_in_one_phase_at_most() -> None:
    assert set(TOLD) == set(Step)
    assert {step for step in Step if phase_with(step) is None} == {Step.FAILURE, Step.GATE}
    assert all(usual_next(step) for step in Step)
    for phase in PHASES:
        assert phase.name.lower().replace(" ", "-") in phase.steps, "a phase has no other name than its step"


def test_what_an_answer_does_is_told_beside_that_answer() -> None:
    told = (
        GateAnswer("redfirst diff run-A", "shows what would be committed"),
        GateAnswer("redfirst approve run-A", "puts the commits on work"),
        GateAnswer('redfirst reject run-A --feedback "..."', "makes fix tasks"),
        GateAnswer('redfirst reject run-A --to split --feedback "..."', "cuts further tasks"),
        GateAnswer("redfirst abandon run-A", "ends the run"),
    )
    assert answers_of("commit", told) == (
        "puts the commits on work",
        (("fix", "makes fix tasks"), ("split", "cuts further tasks")),
    )
