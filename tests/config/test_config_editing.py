"""A value is set in the text of a file, and nothing else of it changes."""

from __future__ import annotations

import tomllib

import pytest

from pipeline.config.editing import with_value

WRITTEN = """# ours
sandbox = "auto"  # why

[agents]  # all of them
backend = "claude"

# judgement
[agents.check]
model = "large"

[limits]
seam=3
"""


@pytest.mark.parametrize(
    ("path", "value", "old", "new"),
    [
        (("limits", "seam"), 4, "seam=3\n", "seam=4\n"),
        (("sandbox",), "none", 'sandbox = "auto"  # why', 'sandbox = "none"  # why'),
        (("base",), "trunk", "# why\n", '# why\nbase = "trunk"\n'),
        (("agents", "model"), "small", 'backend = "claude"\n', 'backend = "claude"\nmodel = "small"\n'),
        (("budget", "cost_usd"), 2.5, "seam=3\n", "seam=3\n\n[budget]\ncost_usd = 2.5\n"),
        (("agents", "make", "argv"), ["a b"], '"large"\n', '"large"\n\n[agents.make]\nargv = ["a b"]\n'),
    ],
)
def test_only_the_value_changes(path: tuple[str, ...], value: object, old: str, new: str) -> None:
    changed = with_value(WRITTEN, path, value)
    assert changed == WRITTEN.replace(old, new)
    assert with_value(changed, path, value) == changed


def test_an_empty_file_and_a_table_within_a_line_can_be_changed() -> None:
    assert with_value("", ("agents", "make", "model"), "x") == '[agents.make]\nmodel = "x"\n'
    changed = with_value("agents = {model = 'a'}\n", ("agents", "effort"), "low")
    assert tomllib.loads(changed) == {"agents": {"model": "a", "effort": "low"}}


def test_what_is_no_toml_or_no_table_is_refused() -> None:
    with pytest.raises(tomllib.TOMLDecodeError):
        with_value("a = \n", ("base",), "x")
    with pytest.raises(ValueError, match="no table"):
        with_value("budget = 3\n", ("budget", "cost_usd"), 1)
