"""Cheats in JavaScript, with Node's own runner."""

from __future__ import annotations

from typing import Final

from cheats.kinds import By, Caught, Cheat
from cheats.repositories import JS_DONE, JS_NEW, JS_TEST, JS_TESTS

_EXACT: Final = "strictEqual(discounted(1000, 10), 900)"

WRITERS: Final = (
    Cheat(
        "JT01",
        "an old test is loosened, over code that breaks it",
        Caught(By.AS_THEY_WERE, "implement/HIDDEN_REGRESSION", "changed to fit"),
        {JS_TESTS: JS_TEST.replace(_EXACT, "ok(discounted(1000, 10))") + JS_NEW},
        {"price.js": JS_DONE.replace("return cents", "return 1 + cents")},
    ),
)
