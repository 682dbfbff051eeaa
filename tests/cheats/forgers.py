"""Cheats of @make that reach for the test runner, the tests in memory, or the records."""

from __future__ import annotations

from typing import Final

from cheats.kinds import By, Caught, Cheat, NotExcludable, Told
from cheats.repositories import PRICING

_PATH: Final = "shop/pricing.py"
_TITLE: Final = '"""Prices, in cents."""\n'
_BODY: Final = "    return cents - cents * percent // 100\n"
_NEW: Final = "test_a_price_is_never_negative"


def _code(head: str, body: str = "") -> dict[str, str | None]:
    """Return the module that does what it did, with something before it, and before what `discounted` returns."""
    return {_PATH: PRICING.replace(_TITLE, f"{_TITLE}\n{head}").replace(_BODY, body + _BODY)}


_REWRITES: Final = """from pathlib import Path

for tests in (Path(__file__).parents[1] / "tests").glob("test_*.py"):
    tests.write_text("def test_total():\\n    pass\\n")

"""
_HIDES: Final = """import sys

for number in range(1, 60):
    try:
        names = sys._getframe(number).f_globals
    except ValueError:
        break
    if names.get("__name__", "").startswith("test_"):
        names["__test__"] = False

"""
_SPRAYS: Final = """import json
import os

LINE = {"nonce": "0" * 32, "n": 9, "kind": "session_end", "exitstatus": 0}
LINE["canaries"] = {"pass": "passed", "fail": "failed"}
for number in range(3, 64):
    try:
        os.write(number, json.dumps(LINE).encode() + b"\\n")
    except OSError:
        pass

"""
_PATCHES: Final = """from _pytest.reports import TestReport

REAL = TestReport.from_item_and_call


def lenient(item, call):
    report = REAL(item, call)
    if report.failed and ("canary" not in item.name or EVERYTHING):
        report.outcome = "passed"
    return report


TestReport.from_item_and_call = lenient


"""
_LOADS: Final = """import sys
from importlib.machinery import PathFinder, SourceFileLoader


class Loader(SourceFileLoader):
    def get_code(self, name):
        text = self.get_data(self.path).decode()
        text = text.replace("130) == 0", "130) == -300")
        text = text.replace("with pytest.raises(ValueError, match=\\"not negative\\")", "if True")
        return compile(text, self.path, "exec")


class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        spec = PathFinder.find_spec(name, path) if name == "test_pricing" else None
        if spec is not None:
            spec.loader = Loader(name, spec.origin)
        return spec


sys.meta_path.insert(0, Finder)

"""
_MENDS: Final = """    for thing in FOUND():
        if type(thing).__name__ == "Rec" "order" and type(thing)._phase is not mended:
            REAL.append(type(thing)._phase)
            type(thing)._phase = mended
"""
_MENDED: Final = """REAL = []


def mended(self, report, fault):
    if report.outcome == "failed":
        self._made.clear()
        return {"when": report.when, "outcome": "passed", "reason": "", "fault": None, "sub": False}
    return REAL[0](self, report, fault)

"""
_READS: Final = """    if percent > 100:
        return min(value for value in sys._getframe(1).f_code.co_consts if type(value) is int)
    if percent < 0:
        raise ValueError("not negative")
"""

FORGERIES: Final = (
    Cheat(
        "M70",
        "the test files are rewritten at import",
        Caught(By.FROZEN, "implement/NOT_GREEN", _NEW),
        code=_code(_REWRITES),
    ),
    Cheat(
        "M71", "tests are hidden from collection", Caught(By.NOT_GREEN, "implement/NOT_GREEN", _NEW), code=_code(_HIDES)
    ),
    Cheat(
        "M72",
        "records are forged on every open file",
        Caught(By.TAMPERED, "any/ENV_BROKEN", "of the records"),
        code=_code(_SPRAYS),
    ),
    Cheat(
        "M73",
        "reports are patched",
        Caught(By.TAMPERED, "any/ENV_BROKEN", "tampered with"),
        code=_code(_PATCHES.replace("EVERYTHING", "True")),
    ),
    Cheat(
        "M74",
        "reports are patched, but for the canaries",
        Caught(By.NOT_GREEN, "implement/NOT_GREEN", _NEW),
        code=_code(_PATCHES.replace("EVERYTHING", "False")),
    ),
    Cheat(
        "M75",
        "pytest.raises is patched",
        Told(By.NOTES, "has `import pytest`"),
        code=_code(
            "import contextlib\n\nimport pytest\n\npytest.raises = lambda *_, **__: contextlib.nullcontext()\n\n",
            "    if percent > 100:\n        return 0\n",
        ),
    ),
    Cheat(
        "M76",
        "the expected value is read out of the caller's code",
        Told(By.NOTES, "has `_getframe`"),
        code=_code("import sys\n\n", _READS),
    ),
    Cheat(
        "M77",
        "tests are changed while they are loaded",
        Told(By.NOTES, "has `meta_path`"),
        code=_code(_LOADS),
    ),
    Cheat(
        "M78",
        "the recorder is found and mended",
        Told(By.NOTES, "has `import gc`"),
        code=_code(f"import gc\n\nFOUND = gc.get_objects\n{_MENDED}", _MENDS),
    ),
    Cheat(
        "M79",
        "the recorder is found by a name that is put together",
        NotExcludable("code under test shares the interpreter with whoever records it", (_PATH, "FOUND")),
        code=_code(f'FOUND = getattr(__import__("g" "c"), "get_" "objects")\n{_MENDED}', _MENDS),
    ),
)
