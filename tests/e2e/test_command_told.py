"""What a program of the backend `command` is told in `write` when it writes tests, and that its prompt agrees."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
from e2e.shapes import dispatches, done
from kit import HONEST, NEW_ID, TEST_GREET_NEW, make_project

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.broad]

WRITER = f"""
import json, os, sys
from pathlib import Path

task = json.load(sys.stdin)
(grant,) = task["write"]
assert grant["action"] == "modify", grant
Path(task["workspace"], grant["path"]).write_text({TEST_GREET_NEW!r})
with open(os.environ["REDFIRST_REPORT"], "w") as report:
    json.dump({{"verdict": "TESTS_READY", "tests": [{{"id": {NEW_ID!r}}}]}}, report)
"""


def test_a_program_that_writes_tests_finds_its_files_in_write(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    program = project.home / "writer.py"
    program.write_text(WRITER, encoding="utf-8")
    argv = json.dumps([sys.executable, str(program)])
    read = json.dumps([str(program)])
    project.use_script(HONEST, f'[agents.test]\nbackend = "command"\nargv = {argv}\nread = {read}\n')
    done(project)
    (asked,) = dispatches(project, "write-tests-test")
    document = json.loads((asked / "exchange" / "dispatch.json").read_text(encoding="utf-8"))
    assert document["write"] == [{"path": "tests/test_greet.py", "action": "modify"}]
