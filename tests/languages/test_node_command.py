"""What a command line or a `test` script starts, read without running it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.testing.languages.javascript.command import Invocation, Runner, Unknown, is_start, of_script, of_words

pytestmark = pytest.mark.slow

SCRIPTS = {"unit": "vitest", "loop": "npm run loop", "all": "npm run lint && npm run unit -- --dir src"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("vitest", Invocation("vitest")),
        ("vitest run --coverage", Invocation("vitest", (), ("--coverage",))),
        ("jest --ci", Invocation("jest", (), ("--ci",))),
        ("node --test", Invocation("node")),
        ("node --test --test-reporter spec --watch test/", Invocation("node", (), ("test/",))),
        (
            "node --import tsx --test 'test/**/*.ts'",
            Invocation("node", ("--import", "tsx"), ("test/**/*.ts",)),
        ),
        ("tsx --test src/a.test.ts", Invocation("node", ("--import", "tsx"), ("src/a.test.ts",))),
        (
            "NODE_OPTIONS=--experimental-vm-modules npx jest",
            Invocation("jest", variables={"NODE_OPTIONS": "--experimental-vm-modules"}),
        ),
        ("cross-env TZ=UTC LANG=C jest", Invocation("jest", variables={"TZ": "UTC", "LANG": "C"})),
        (
            "node --experimental-vm-modules node_modules/jest/bin/jest.js -i",
            Invocation("jest", ("--experimental-vm-modules",), ("-i",)),
        ),
        ("node node_modules/.bin/vitest run a", Invocation("vitest", (), ("a",))),
        ("c8 --all node --test", Invocation("node")),
        ("eslint . && npm run unit", Invocation("vitest")),
        ("npm run all", Invocation("vitest", (), ("--dir", "src"))),
        ("pnpm exec vitest", Invocation("vitest")),
        ("yarn jest --ci", Invocation("jest", (), ("--ci",))),
        ("npm t", Unknown()),
        ("mocha test", Unknown("mocha")),
        ("standard && tape test.js", Unknown("tape")),
        ("eslint . && mocha && node --test", Invocation("node")),
        ("npm run loop", Unknown()),
        ('echo "Error: no test specified" && exit 1', Unknown()),
        ("node test.js", Unknown()),
        ("jest 'unclosed", Unknown()),
        ("", Unknown()),
    ],
)
def test_what_a_script_runs(text: str, found: Invocation | Unknown) -> None:
    assert of_script(text, SCRIPTS) == found


def test_where_the_wrapper_of_a_shell_ends() -> None:
    assert [is_start([word]) for word in ("node", "npx", "/usr/bin/vitest", "pnpm", "nix", "-c", "env")] == [
        True, True, True, True, False, False, False,
    ]  # fmt: skip


RUNNERS: list[Runner] = ["node", "vitest", "jest"]
WORDS = st.lists(st.from_regex(r"--[a-z]+=[a-z]+|[a-z]+/[a-z*]+\.ts", fullmatch=True), max_size=3).map(tuple)


@given(st.sampled_from(RUNNERS), WORDS)
def test_an_invocation_is_read_back_from_its_words(runner: Runner, arguments: tuple[str, ...]) -> None:
    plain = tuple(word for word in arguments if runner != "node" or not word.startswith("-"))
    one = Invocation(runner, ("--import", "tsx"), plain)
    assert of_words(("node", *one.words()), {}) == one
