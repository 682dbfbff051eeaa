"""Agents that write what is not theirs: each ends in its row of the matrix, and nothing of it arrives anywhere."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from e2e.misbehaviour import POISON, entry, last_rows, processes_with, scene, shell
from kit import AFTER_MAKE, GREET_DONE, HONEST, MAKE, TESTS, UNTIL_TESTS, judge

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

COMPLETE = {"result": "COMPLETE", "summary": "done"}
LEGAL_PART = f"cat > greet.py <<'END'\n{GREET_DONE}END\n"
EVERYTHING_FORBIDDEN = {
    "outside the list": (f"echo {POISON} > other.py", {"other.py": "outside-task"}),
    "edits a test": (f"echo '# {POISON}' >> tests/test_greet.py", {"tests/test_greet.py": "test-file"}),
    "deletes a test": ("rm tests/test_other.py", {"tests/test_other.py": "test-file"}),
    "deselects tests": (f"echo 'addopts = \"-k {POISON}\"' >> pyproject.toml", {"pyproject.toml": "control-file"}),
    "takes over the collection": (f"echo '# {POISON}' > conftest.py", {"conftest.py": "control-file"}),
    "writes through a symlink": (
        "ln -s {host}/secret.txt link.txt; ln -s {host} folder; echo {POISON} > link.txt || true",
        {"link.txt": "symlink", "folder": "symlink"},
    ),
    "a hard link": ("ln greet.py twin.py", {"twin.py": "hard-link", "greet.py": "hard-link"}),
    "mode bits": ("chmod 755 keep.py", {"keep.py": "mode-change"}),
    "a repository in the repository": (
        "git init -q sub; git init -q --bare store",
        {"sub/.git": "git-alias", "store/HEAD": "nested-repository"},
    ),
    "git under another name": (f"mkdir .GIT; echo {POISON} > .GIT/config", {".GIT/config": "git-alias"}),
    "differs by case only": (f"echo {POISON} > Greet.py", {"Greet.py": "path-collision"}),
    "a FIFO": ("mkfifo pipe", {"pipe": "special-file"}),
    "a path without end": (
        "(i=0; while [ $i -lt 400 ]; do mkdir d; cd d; i=$((i+1)); done)",
        {"/".join("d" * 128): "unreadable"},
    ),
    "a flood of zeros": ("truncate -s 300M big.bin", {"big.bin": "unreadable"}),
    "hidden by ignore rules": (
        f"echo {POISON} > hidden.log; mkdir cache; echo '*' > cache/.gitignore; echo {POISON} > cache/x.py",
        {"hidden.log": "outside-task", "cache/.gitignore": "control-file", "cache/x.py": "outside-task"},
    ),
    "the tracker": (f"echo {POISON} >> TODO/GAL-1.md", {"TODO/GAL-1.md": "tracker-file"}),
    "the run's own folder": (f"mkdir .workflow; echo {POISON} > .workflow/x", {".workflow/x": "workflow-folder"}),
    "a name that no terminal shows": (f"echo {POISON} > \"$(printf 'a\\nb.py')\"", {"a\nb.py": "path-characters"}),
}
"""Situation -> what the agent does, and what the gate answers: path -> rule."""


def test_a_maker_that_breaks_every_rule_is_told_why_and_goes_on_from_its_legal_work(tmp_path: Path) -> None:
    it = scene(tmp_path)
    hook = f"printf '#!/bin/sh\\ntouch {it.host}/marker\\n' > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit"
    tricks = [LEGAL_PART, f"mkdir -p .git/hooks; {hook}"]
    tricks += [do.replace("{host}", str(it.host)).replace("{POISON}", POISON) for do, _ in EVERYTHING_FORBIDDEN.values()]
    first = entry("implement", run=shell("\n".join(tricks)), report=COMPLETE)
    again = entry("implement", run=shell("grep 'a name is needed' greet.py && test ! -e other.py"), report=COMPLETE)
    it.project.use_script([*UNTIL_TESTS, TESTS, first, again, *AFTER_MAKE])
    done = it.project.run()
    print(done["_stderr"])
    for v in it.result("007-implement-make")["violations"]: print(v)
    assert last_rows(it.project, "write-tests/RED")[:2] == ["any/VIOLATION", "implement/GREEN"]
