"""A Go module of two packages goes from issue to commits, offline: RED, GREEN and stubs measured with real go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from e2e.shapes import TRACKER, answers, changed, dispatches, done, evidence, red_of, stdout_of
from kit import make_project
from languages.modules import environment, needs_go

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry, Project

pytestmark = [pytest.mark.slow, needs_go]

MONEY = """// Package money reads and writes amounts of money.
package money

import (
    "fmt"
    "strconv"
    "strings"
)

// Amount counts cents.
type Amount int64

// String returns the amount as people write it.
func (a Amount) String() string {
    return fmt.Sprintf("%d.%02d", int64(a)/100, int64(a)%100)
}

// Parse returns the amount that a text names.
func Parse(text string) (Amount, error) {
    whole, cents, _ := strings.Cut(text, ".")
    units, err := strconv.ParseInt(whole, 10, 64)
    if err != nil {
        return 0, fmt.Errorf("%q is no amount: %w", text, err)
    }
    rest, _ := strconv.ParseInt(cents, 10, 64)
    return Amount(units*100 + rest), nil
}
"""
MONEY_TEST = """package money

import "testing"

func TestString(t *testing.T) {
    for want, amount := range map[string]Amount{"0.05": 5, "12.30": 1230} {
        t.Run(want, func(t *testing.T) {
            if got := amount.String(); got != want {
                t.Errorf("got %q, want %q", got, want)
            }
        })
    }
}

func TestParse(t *testing.T) {
    amount, err := Parse("12.30")
    if err != nil || amount != 1230 {
        t.Fatalf("got %d, %v", amount, err)
    }
}
"""
INVOICE = """// Package invoice adds up what is to be paid.
package invoice

import "example.com/billing/money"

// Line is one thing on an invoice.
type Line struct {
    What  string
    Each  money.Amount
    Count int64
}

// Invoice is a list of things.
type Invoice struct {
    Lines []Line
}

// Total returns what is to be paid.
func (i *Invoice) Total() money.Amount {
    var total money.Amount
    for _, line := range i.Lines {
        total += line.Each * money.Amount(line.Count)
    }
    return total
}
"""
INVOICE_TEST = """package invoice_test

import (
    "fmt"
    "testing"

    "example.com/billing/invoice"
)

func TestTotal(t *testing.T) {
    given := invoice.Invoice{Lines: []invoice.Line{{What: "tea", Each: 250, Count: 2}}}
    if got := given.Total(); got != 500 {
        t.Errorf("got %v", got)
    }
}

func ExampleInvoice_Total() {
    given := invoice.Invoice{Lines: []invoice.Line{{What: "tea", Each: 250, Count: 2}}}
    fmt.Println(given.Total())
    // Output: 5.00
}
"""
MODULE = {
    "go.mod": "module example.com/billing\n\ngo 1.19\n",
    ".gitignore": "*.test\n*.out\n",
    "money/money.go": MONEY,
    "money/money_test.go": MONEY_TEST,
    "invoice/invoice.go": INVOICE,
    "invoice/invoice_test.go": INVOICE_TEST,
    **TRACKER,
}

REFUSES = """
func TestParseRefuses(t *testing.T) {
    for name, text := range map[string]string{"cents": "1.x", "nothing": "", "blank": " "} {
        t.Run(name, func(t *testing.T) {
            if amount, err := Parse(text); err == nil {
                t.Errorf("%q is taken for %v", text, amount)
            }
        })
    }
}
"""
CAREFUL = MONEY.replace(
    "    rest, _ := strconv.ParseInt(cents, 10, 64)\n",
    """    if cents == "" {
        cents = "0"
    }
    rest, err := strconv.ParseInt(cents, 10, 64)
    if err != nil {
        return 0, fmt.Errorf("%q is no amount: %w", text, err)
    }
""",
)

STUB = "\n// Discount returns what is taken off.\nfunc (i *Invoice) Discount(percent int64) money.Amount {\n\tBODY\n}\n"
SCAFFOLD = STUB.replace("BODY", 'panic("not implemented")')
DISCOUNT = STUB.replace("BODY", "return i.Total() * money.Amount(percent) / 100")
DISCOUNT_TEST = """package invoice_test

import (
    "testing"

    "example.com/billing/invoice"
)

func TestDiscount(t *testing.T) {
    given := invoice.Invoice{Lines: []invoice.Line{{What: "tea", Each: 250, Count: 2}}}
    if got := given.Discount(10); got != 50 {
        t.Errorf("got %v", got)
    }
}
"""
SYMBOL = {"path": "invoice/invoice.go", "name": "Invoice.Discount", "new": True}
WITH_STUBS = "[stub_first]\ngo = true\n"
WITHOUT_STUBS = "[stub_first]\ngo = false\n"


def make(tmp_path: Path) -> Project:
    project = make_project(tmp_path, MODULE)
    project.env["PATH"] = f"{environment().prefix / 'bin'}:{project.environment()['PATH']}"
    return project


@pytest.mark.broad
def test_a_table_of_cases_in_an_existing_file(tmp_path: Path) -> None:
    project = make(tmp_path)
    tests = {"money/money_test.go": MONEY_TEST + REFUSES}
    ask = ["go", "test", "./money"]
    project.use_script(answers(MODULE, tests, {"money/money.go": CAREFUL}, run=ask))
    done(project)
    assert red_of(project) == {
        "money::TestParseRefuses": "ASSERTION_MISMATCH",
        "money::TestParseRefuses/cents": "ASSERTION_MISMATCH",
    }
    assert set(evidence(project, "task-1.json")["ledger"]["guards"]) == {
        "money::TestParseRefuses/blank",
        "money::TestParseRefuses/nothing",
    }
    assert changed(project, "HEAD~1") == ["money/money.go", "money/money_test.go"]
    records = evidence(project, "green-1.json")["records"]
    assert {"invoice::ExampleInvoice_Total", "money::TestString/0.05"} <= set(records)
    # who implements can run the project's own tests
    (implement,) = dispatches(project, "implement-make")
    assert "example.com/billing/money" in stdout_of(implement)


@pytest.mark.broad
def test_a_new_method_and_its_tests_in_a_new_file_beside_others(tmp_path: Path) -> None:
    project = make(tmp_path)
    tests = {"invoice/discount_test.go": DISCOUNT_TEST}
    code = {"invoice/invoice.go": INVOICE + DISCOUNT}
    project.use_script(answers(MODULE, tests, code, symbols=[SYMBOL]), WITHOUT_STUBS)
    done(project)
    assert red_of(project) == {"invoice/discount_test.go": "MISSING_BEHAVIOR"}
    assert evidence(project, "task-1.json")["green"]["stub_failures"] == ["invoice::TestDiscount"]


def scaffolded(tests: dict[str, str], *passes: dict[str, str]) -> list[Entry]:
    code = {"invoice/invoice.go": INVOICE + DISCOUNT}
    whole = answers(MODULE, tests, code, symbols=[SYMBOL])
    report = {"result": "COMPLETE", "summary": "Discount is there, as a stub"}
    stubs: list[Entry] = [{"when": {"kind": "stub"}, "files": files, "report": report} for files in passes]
    return [*whole[:5], *stubs, *whole[5:]]


@pytest.mark.broad
def test_a_new_method_is_scaffolded_first_and_makes_two_commits(tmp_path: Path) -> None:
    project = make(tmp_path)
    beside = {"invoice/invoice_test.go": INVOICE_TEST + DISCOUNT_TEST[DISCOUNT_TEST.index("func") :]}
    stubs = {"invoice/invoice.go": INVOICE + SCAFFOLD}
    project.use_script(scaffolded(beside, stubs), WITH_STUBS)
    done(project)
    assert red_of(project) == {"invoice::TestDiscount": "MISSING_BEHAVIOR"}
    assert project.git("show", "HEAD~2:invoice/invoice.go").rstrip() == stubs["invoice/invoice.go"].rstrip()
    assert changed(project, "HEAD~1") == ["invoice/invoice.go", "invoice/invoice_test.go"]
    assert project.rows().count("stub/STUBBED") == 1
