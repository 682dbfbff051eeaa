"""Projects whose code lies to its tests: what @make or @test wrote instead of the work, by case of the corpus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

APP: Final = "src/app.py"
NEW: Final = "tests/test_new.py"
START: Final[Mapping[str, str]] = {
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["src"]\ntestpaths = ["tests"]\n',
    APP: "def add(left, right):\n    return left - right\n",
    "tests/test_app.py": "from app import add\n\n\ndef test_nothing():\n    assert add(0, 0) == 0\n",
}
RED: Final[Mapping[str, str]] = {
    **START,
    NEW: "from app import add\n\n\ndef test_adds():\n    assert add(1, 2) == 3\n",
}
HONEST: Final[Mapping[str, str]] = {**RED, APP: "def add(left, right):\n    return left + right\n"}

_EVERY_DESCRIPTOR: Final = """\
import json
import os

LINES = [
    {"kind": "start", "id": "tests/test_new.py::test_adds"},
    {"kind": "test", "id": "tests/test_new.py::test_adds", "reach": None, "timed_out": False,
     "phases": [{"when": "call", "outcome": "passed", "reason": "", "fault": None}]},
    {"kind": "session_end", "exitstatus": 0, "canaries": {"pass": "passed", "fail": "failed"}},
]
for number in range(3, 64):
    for place, line in enumerate(LINES):
        try:
            os.write(number, json.dumps({"nonce": "0" * 32, "n": place, **line}).encode() + b"\\n")
        except OSError:
            pass


def add(left, right):
    return left - right
"""

_STOLEN_EMIT: Final = """\
import gc
import sys

import redfirst_evidence


def add(left, right):
    for recorder in gc.get_objects():
        if type(recorder) is redfirst_evidence.Recorder:
            for phases in recorder._phases.values():
                phases.append({"when": "call", "outcome": "passed", "reason": "", "fault": None})
    return left - right
"""

_WITHOUT_THE_TEST: Final = """\
def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if "adds" not in item.name]
"""

_EVERYTHING_PASSES: Final = """\
import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    report.outcome = "passed"
    report.longrepr = None
"""

_KILLED_BEFORE_ITS_END: Final = """\
import os

from _pytest import runner

old, down = runner.CallInfo.from_call.__func__, runner.SetupState.teardown_exact


def from_call(cls, func, when, reraise=None):
    return old(cls, (lambda: None) if when == "call" else func, when, reraise)


def teardown_exact(self, nextitem):
    if nextitem is None and not self.stack:
        os.kill(os.getpid(), 9)
    return down(self, nextitem)


runner.CallInfo.from_call = classmethod(from_call)
runner.SetupState.teardown_exact = teardown_exact


def add(left, right):
    return left - right
"""


@dataclass(frozen=True)
class Lie:
    """One way to look GREEN without being it.

    Args:
        files: What is different from the RED tree; None removes a file.
        noted: Whether a reviewer has to be told, since the measurement cannot be certain.
    """

    files: Mapping[str, str | None]
    noted: bool = False

    def tree(self) -> dict[str, str]:
        """Return the whole project."""
        changed = {**RED, **self.files}
        return {name: text for name, text in changed.items() if text is not None}


def _production(source: str) -> Lie:
    return Lie({APP: source})


LIES: Final[Mapping[str, Lie]] = {
    "VS-01": _production('import os\n\nprint("2 passed in 0.01s", flush=True)\nos._exit(0)\n'),
    "VS-03": _production("import sys\n\nsys.exit(0)\n"),
    "VS-04": _production('import pytest\n\n\ndef add(left, right):\n    pytest.skip("later")\n'),
    "VS-05": _production('import pytest\n\n\ndef add(left, right):\n    pytest.xfail("known")\n'),
    "VS-09": Lie({"pytest.ini": "[pytest]\naddopts = -k nothing\npythonpath = src\ntestpaths = tests\n"}),
    "VS-10": Lie(
        {
            APP: "class Agreeable:\n    def __eq__(self, other):\n        return True\n\n    __hash__ = None\n\n\n"
            "def add(left, right):\n    return Agreeable()\n"
        },
        noted=True,
    ),
    "VS-13": _production('import pytest\n\npytest.skip("not today", allow_module_level=True)\n'),
    "VS-17": _production(_EVERY_DESCRIPTOR),
    "VS-18": Lie({NEW: "def test_adds():\n    assert True\n"}),
    "VS-20": Lie({APP: _STOLEN_EMIT}, noted=True),
    "OWN-VS-01": Lie({NEW: None}),
    "OWN-VS-02": _production(
        "import atexit, os\n\natexit.register(os._exit, 0)\n\n\ndef add(left, right):\n    return 0\n"
    ),
    "OWN-VS-03": _production(
        "import os\n\n\ndef add(left, right):\n    if os.fork() == 0:\n        return left + right\n    os._exit(0)\n"
    ),
    "OWN-VS-04": _production(
        "import pathlib\n\nfor name in pathlib.Path(__file__).parents[1].glob('tests/test_new.py'):\n"
        "    name.write_text('def test_adds():\\n    pass\\n')\n\n\ndef add(left, right):\n    return left - right\n"
    ),
    "OWN-VS-05": _production("def add(left, right):\n    raise KeyboardInterrupt\n"),
    "OWN-VS-06": _production("def add(left, right):\n    import unittest\n\n    raise unittest.SkipTest('later')\n"),
    "OWN-VS-07": Lie({"conftest.py": _WITHOUT_THE_TEST}),
    "OWN-VS-08": Lie({"conftest.py": _EVERYTHING_PASSES}),
    "OWN-VS-09": _production("import signal, os\n\nos.kill(os.getpid(), signal.SIGKILL)\n"),
    "OWN-VS-10": _production(
        "import pytest\n\n\ndef add(left, right):\n    pytest.exit('all is well', returncode=0)\n"
    ),
    "OWN-VS-11": Lie({"src/pytest.py": "def main(*_):\n    return 0\n", APP: HONEST[APP].replace("+", "-")}),
    "OWN-VS-12": _production(
        "import sys\n\n\ndef add(left, right):\n    frame = sys._getframe(1)\n"
        "    frame.f_code = None\n    return left + right\n"
    ),
    "OWN-VS-13": _production(_KILLED_BEFORE_ITS_END),
}
