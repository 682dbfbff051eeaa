from __future__ import annotations

import pytest

from todo.outline import outline, split_lines


def titles(text: str) -> list[str]:
    return [heading.title for heading in outline(split_lines(text)).headings]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# A\n## B ##\n   ### C\n    # code\n#no\n", ["A", "B", "C"]),
        ("```\n# A\n```\n# B\n", ["B"]),
        ("```py\n# A\n~~~\n# B\n````\n# C\n", ["C"]),
        ("````\n```\n# A\n````  \n# B\n", ["B"]),
        ("``` a`b\n# A\n", ["A"]),
        ("```\n# A\n    ```\n# B\n", []),
        ("<!--\n# A\n--> x\n# B\n<!-- c -->\n# D\n", ["B", "D"]),
        ("- item\n  # A\n\n  # B\n# C\n", ["C"]),
        ("- item\n  ```\n  # A\n# B\n", ["B"]),
        ("- ```\n  # A\n  ```\n# B\n", ["B"]),
        ("1. item\n   - inner\n\n  # A\n", ["A"]),
        ("text\n-\n   ```\n# A\n", []),
        ("- item\nrunning on\n  ```\n# A\n", ["A"]),
        ("-\n\n  # A\n", ["A"]),
        ("-      # code\n# A\n", ["A"]),
        ("\t# A\r\n# B\r# C", ["B", "C"]),
    ],
)
def test_headings_are_those_of_commonmark(text: str, expected: list[str]) -> None:
    assert titles(text) == expected


def test_a_section_ends_at_the_next_heading_that_is_not_deeper() -> None:
    found = outline(split_lines("## A\na\n### in A\n# B\n## a:\n"))
    assert found.section("a") == (0, 1, 3)
    assert found.section("B") is None
    assert found.section("B", level=1) == (3, 4, 5)


@pytest.mark.parametrize(
    ("text", "line"), [("a\n```\nb\n", 1), ("<!-- a\n", 0), ("- ```\n", None), ("```\n```\n", None)]
)
def test_a_fence_that_swallows_the_rest_is_noticed(text: str, line: int | None) -> None:
    assert outline(split_lines(text)).unclosed == line
