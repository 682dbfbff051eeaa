"""Which names of code a task speaks of: its symbols, and what its text writes as code does."""

from __future__ import annotations

from pipeline.judge.reports.fields import FileChange, Symbol
from pipeline.judge.reports.tasks import Task
from pipeline.steps.evidence.impact import names_of

BODY = """# Task

Make `Cart.apply_discount(5)` round.
Callers of roundTotal and of to_cents() stay; parse(x) too. Nothing else is renamed.

```
for line in a_long_example_that_is_no_span:
```
"""


def test_names_are_those_of_symbols_and_of_code_in_the_text() -> None:
    file = FileChange.model_validate_json('{"path": "shop.py", "action": "modify"}')
    task = Task(id="1", title="Round", files=(file,), test_files=(), symbols=(Symbol(name="Cart.total"),), body=BODY)
    found = names_of(task)
    assert {"Cart", "total", "apply_discount", "roundTotal", "to_cents", "parse"} <= found
    assert not {"Callers", "Nothing", "renamed", "Round"} & found
