"""What other programs print about their faults, read with bounds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipeline.languages.sources.faults.foreign import (
    Found,
    cargo_mutants_lines,
    functions,
    mutmut_place,
    mutmut_results,
)

SOURCE = b"""def price(n, limit):
    if n > limit:
        return n * 2
    return n


class Cart:
    @property
    def price(self):
        if n > limit:
            return 1
        return n
"""
SHOWN = """# shop.{name}__mutmut_1: survived
--- shop.py
+++ shop.py
@@ -1,4 +1,4 @@
 def price(n, limit):
-{indent}if n > limit:
+{indent}if n >= limit:
         return n * 2
"""


def test_results_and_their_places() -> None:
    output = "    shop.x_price__mutmut_1: survived\n    shop.xǁCartǁprice__mutmut_2: no tests\nnoise: here\n"
    assert mutmut_results(output) == {
        "shop.x_price__mutmut_1": "survived",
        "shop.xǁCartǁprice__mutmut_2": "no tests",
    }
    what = "`if n > limit:` becomes `if n >= limit:`"
    one = mutmut_place("shop.x_price__mutmut_1", SHOWN.format(name="x_price", indent="    "), "shop.py", SOURCE)
    other = mutmut_place("shop.xǁCartǁprice__mutmut_2", SHOWN.format(name="x", indent="    "), "shop.py", SOURCE)
    assert one == Found("shop.py", 2, what)
    assert other == Found("shop.py", 10, what)


def test_what_does_not_fit_has_no_place() -> None:
    shown = SHOWN.format(name="x_price", indent="").replace("n > limit", "gone")
    assert mutmut_place("shop.x_price__mutmut_1", shown, "shop.py", SOURCE) is None
    assert mutmut_place("shop.x_other__mutmut_1", shown, "shop.py", SOURCE) is None
    assert mutmut_place("nonsense", shown, "shop.py", SOURCE) is None
    assert mutmut_place("shop.x_price__mutmut_1", "", "shop.py", b"def broken(:") is None


def test_functions_are_named_as_mutmut_does() -> None:
    assert [each.pattern for each in functions(SOURCE, (2,))] == ["*x_price__mutmut_*"]
    assert [each.pattern for each in functions(SOURCE, (11, 1))] == ["*x_price__mutmut_*", "*xǁCartǁprice__mutmut_*"]
    assert functions(SOURCE, (5, 7)) == ()
    assert functions(b"def broken(:", (1,)) == ()


def test_lists_of_cargo_mutants() -> None:
    text = "src/lib.rs:4:5: replace add -> i32 with 0\nsrc/a b.rs:12:1: replace < with == in f\nnot a line\n"
    assert list(cargo_mutants_lines(text)) == [
        Found("src/lib.rs", 4, "replace add -> i32 with 0"),
        Found("src/a b.rs", 12, "replace < with == in f"),
    ]


@given(st.text(), st.text(max_size=60))
def test_any_output_is_read(output: str, name: str) -> None:
    mutmut_results(output)
    assert all(found.line >= 0 for found in cargo_mutants_lines(output))
    place = mutmut_place(name, output, "shop.py", SOURCE)
    assert place is None or 1 <= place.line <= SOURCE.count(b"\n")
