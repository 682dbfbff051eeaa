"""What a change of JavaScript and TypeScript tests loosens is told in words; an honest change is told nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.languages.sources.weakening import weakenings

JEST = """import { total, parse, load } from '../src/app';

const CASES = [['1', 1], ['2', 2], ['3', 3]];

function check(input, want) {
  const got = parse(input);
  expect(got).toBe(want);
}

describe('cart', () => {
  let cart;
  beforeEach(() => {
    cart = [1, 2, 3];
  });

  it('is summed', async () => {
    const sum = total(cart);
    expect(sum).toBe(6);
    expect(total([0.1, 0.2])).toBeCloseTo(0.3, 5);
    expect(load('x')).toEqual({ id: 1, tags: ['a'] });
    await expect(load('y')).rejects.toThrow('no y');
  }, 500);

  it.each([['1', 1], ['2', 2], ['3', 3]])('parses %s', (input, want) => {
    expect(parse(input)).toBe(want);
  });

  it.each(CASES)('parses again %s', (input, want) => check(input, want));

  it.each`
    input  | want
    ${'4'} | ${4}
    ${'5'} | ${5}
  `('parses from a table $input', ({ input, want }) => {
    check(input, want);
  });

  it('parses in a loop', () => {
    expect.assertions(2);
    for (const [input, want] of [['6', 6], ['7', 7]]) {
      expect(parse(input)).toBe(want);
    }
    expect(render(cart)).toMatchSnapshot();
  });
});
"""
SUM = "    expect(sum).toBe(6);\n"
NODE = """import test from 'node:test';
import assert, { deepEqual } from 'node:assert/strict';

test('sums', { timeout: 1000 }, async (t) => {
  const sum = total([1, 2, 3]);
  assert.equal(sum, 6);
  deepEqual(parse('[1]'), [1]);
  assert.ok(sum > 5 && sum < 7);
  await assert.rejects(load('y'), /no y/);
  await t.test('inner', () => {
    assert.strictEqual(parse('1'), 1);
  });
});
"""
CHAI = """describe('cart', function () {
  it('is summed', function () {
    expect(total([1, 2])).to.equal(3);
    expect(parse('[1]')).to.deep.equal([1]);
    expect(ready()).to.be.true;
    expect(load()).to.have.property('id', 7);
    assert.equal(total([]), 0);
  });
});
"""
LOOSENED_JEST = [
    (SUM, "", "cart > is summed: 1 of 4 assertions are gone"),
    (
        "expect(sum).toBe(6)",
        "expect(sum).toBeTruthy()",
        "cart > is summed: an assertion is loosened from toBe to truth",
    ),
    ("expect(sum).toBe(6)", "expect(sum).toBeDefined()", "loosened from toBe to toBeDefined"),
    ("expect(sum).toBe(6)", "expect(sum).toBeGreaterThan(0)", "loosened from toBe to toBeGreaterThan"),
    ("expect(sum).toBe(6)", "expect(sum).not.toBe(7)", "loosened from toBe to not toBe"),
    ("expect(sum).toBe(6)", "expect(sum).toBe(7)", "another value is expected: 7 instead of 6"),
    ("expect(sum).toBe(6)", "expect(sum).toBe(sum)", "an assertion can never fail"),
    ("expect(sum).toBe(6)", "expect(true).toBe(true)", "an assertion can never fail"),
    ("expect(sum).toBe(6)", "expect(sum === 6 || sum === 7).toBe(true)", "loosened from toBe to one of several"),
    (
        "expect(sum).toBe(6)",
        "expect(String(sum)).toContain('6')",
        "cart > is summed: an assertion is loosened from toBe to toContain",
    ),
    ("expect(sum).toBe(6)", "if (sum) expect(sum).toBe(6)", "an assertion is made on a condition only"),
    ("expect(sum).toBe(6)", "try { expect(sum).toBe(6) } catch (e) {}", "a failing assertion is swallowed"),
    (SUM, "    if (process.env.CI) { return; }\n" + SUM, "it may end before its assertions"),
    (SUM, "    return;\n" + SUM, "cart > is summed: it may end before its assertions"),
    ("0.3, 5", "0.3, 1", "a tolerance is raised"),
    ("toBeCloseTo(0.3, 5)", "toBeGreaterThan(0)", "loosened from toBeCloseTo"),
    ("toEqual({ id: 1, tags: ['a'] })", "toMatchObject({ id: 1 })", "loosened from toEqual to toMatchObject"),
    ("toEqual({ id: 1, tags: ['a'] })", "toEqual(expect.anything())", "cart > is summed: the value 1 is gone"),
    ("tags: ['a'] }", "tags: expect.any(Array) }", "cart > is summed: the value a is gone"),
    ("toEqual({ id: 1, tags: ['a'] })", "toMatchSnapshot()", "loosened from toEqual to toMatchSnapshot"),
    ("    await expect(load('y'))", "    expect(load('y'))", "an assertion can never fail"),
    (".toThrow('no y')", ".toThrow()", "loosened from toThrow to toThrow"),
    ("it('is summed'", "it.skip('is summed'", "cart > is summed: skip is added"),
    ("it('is summed'", "xit('is summed'", "skip is added"),
    ("it('is summed'", "it.failing('is summed'", "failing is added"),
    ("it('is summed'", "it.only('is summed'", "only is added"),
    ("describe('cart'", "describe.skip('cart'", "cart > parses in a loop: skip is added"),
    ("it('is summed'", "it.todo('is summed'); const unused = ('is summed'", "todo is added"),
    (", ['2', 2], ['3', 3]])('parses", "])('parses", "cart > parses %s: 2 of 3 parametrised cases are dropped"),
    ("CASES = [['1', 1], ['2', 2], ['3', 3]]", "CASES = [['1', 1]]", "parses again %s: 2 of 3 parametrised cases"),
    ("    ${'5'} | ${5}\n", "", "from a table $input: 1 of 2 parametrised cases are dropped"),
    ("[['6', 6], ['7', 7]]", "[['6', 6]]", "cart > parses in a loop: 1 of 4 assertions are gone"),
    ("expect.assertions(2)", "expect.assertions(0)", "another value is expected: 0 instead of 2"),
    ("    cart = [1, 2, 3];\n", "", "cart > beforeEach: the fixture is emptied"),
    ("  it('is summed'", "  jest.mock('../src/app');\n  it('is summed'", "'../src/app' is replaced by a stand-in"),
    (
        SUM,
        "    jest.spyOn(app, 'total').mockReturnValue(6);\n" + SUM,
        "cart > is summed: something more is replaced by a stand-in",
    ),
    ("  expect(got).toBe(want);\n", "", "cart > parses again %s: 1 of 1 assertions are gone"),
    ("  expect(got).toBe(want);\n", "  expect(got).toBeDefined();\n", "loosened from toBe to toBeDefined"),
]
LOOSENED_NODE = [
    ("assert.equal(sum, 6)", "assert.ok(sum)", "loosened from equal to truth"),
    ("assert.equal(sum, 6)", "assert.notEqual(sum, 7)", "loosened from equal to notEqual"),
    ("deepEqual(parse('[1]'), [1])", "assert(parse('[1]'))", "loosened from deepEqual to truth"),
    ("sum > 5 && sum < 7", "sum > 5", "1 of 6 assertions are gone"),
    ("load('y'), /no y/", "load('y')", "loosened from rejects to rejects"),
    ("assert.strictEqual(parse('1'), 1)", "parse('1')", "1 of 6 assertions are gone"),
    ("{ timeout: 1000 }", "{ timeout: 1000, skip: true }", "skip is added"),
    ("{ timeout: 1000 }", "{ timeout: 1000, todo: 'later' }", "todo is added"),
    ("  const sum =", "  t.skip();\n  const sum =", "skip is added"),
    ("  const sum =", "  t.mock.method(app, 'total', () => 6);\n  const sum =", "replaced by a stand-in"),
]
LOOSENED_CHAI = [
    ("'id', 7", "'id', 8", "another value is expected: 8 instead of 7"),
    (".to.equal(3)", ".to.exist", "loosened from equal to exist"),
    (".to.equal(3)", ".to.be.above(0)", "loosened from equal to above"),
    (".to.deep.equal([1])", ".to.be.an('array')", "loosened from equal to an"),
    (
        "expect(ready()).to.be.true",
        "expect(ready()).to.be.ok",
        "cart > is summed: an assertion is loosened from true to truth",
    ),
    ("    expect(ready()).to.be.true;\n", "", "1 of 5 assertions are gone"),
    ("assert.equal(total([]), 0)", "assert.exists(total([]))", "loosened from equal to exists"),
    ("  it('is summed', function () {", "  it('is summed', function () {\n    this.skip();", "skip is added"),
]
HONEST_JEST = [
    (SUM, "    expect(\n      sum, // six\n    ).toBe(6)\n"),
    ("const sum = total(cart);\n    expect(sum).toBe(6)", "expect(total(cart)).toBe(6)"),
    ("expect(sum).toBe(6)", "expect(sum).toStrictEqual(6)"),
    ("expect(sum).toBe(6)", "expect(sum).toBe(6);\n    expect(total([])).toBe(0)"),
    ("expect(parse(input)).toBe(want);\n  });", "check(input, want);\n  });"),
    ("const got = parse(input);\n  expect(got).toBe(want)", "expect(parse(input)).toBe(want)"),
    (", ['3', 3]])('parses", ", ['3', 3], ['9', 9]])('parses"),
    ("['1', 1], ['2', 2], ['3', 3]])('parses", "['3', 3], ['2', 2], ['1', 1]])('parses"),
    ("    cart = [1, 2, 3];\n", "    cart = [1, 2, 3];\n    reset();\n"),
    ("  }, 500);", "  }, 200);"),
    ("'is summed'", "'is the sum of its things'"),
    ("0.3, 5", "0.3, 8"),
    ("it('is summed'", "test('is summed'"),
    ("function check(input, want) {", "const check = (input: string, want: number) => {"),
    ("load('x')).toEqual({ id: 1, tags: ['a'] })", "load('x')).toEqual({ id: 1, tags: ['a'], })"),
]


def told(old: str, new: str, text: str, path: str) -> str:
    """Return what is told of a text in which something is replaced."""
    assert old in text, old
    return "; ".join(map(str, weakenings(path, text.encode(), text.replace(old, new).encode())))


def test_what_is_loosened_is_said() -> None:
    for text, path, cases in (
        (JEST, "src/app.test.ts", LOOSENED_JEST),
        (NODE, "test/app.test.mjs", LOOSENED_NODE),
        (CHAI, "test/app.spec.js", LOOSENED_CHAI),
    ):
        for old, new, says in cases:
            assert says in told(old, new, text, path), (old, new)


def test_an_honest_change_is_told_nothing() -> None:
    for old, new in HONEST_JEST:
        assert told(old, new, JEST, "src/app.test.ts") == "", (old, new)


def test_three_tests_may_become_a_table() -> None:
    three = "".join(f"test('parses {n}', () => {{ expect(parse('{n}')).toBe({n}); }});\n" for n in (1, 2, 3))
    table = "test.each([['1', 1], ['2', 2], ['3', 3]])('parses %s', (text, n) => { expect(parse(text)).toBe(n); });\n"
    found = [str(line) for line in weakenings("a.test.js", table.encode(), three.encode())]
    assert found == ["parses %s: the test is removed (line 1)"], "told: nobody can see that it is the same"


def test_a_commonjs_file_and_jsx_are_read() -> None:
    text = "const { equal } = require('assert');\nit('a', () => { equal(f(), 1); });\n"
    assert "loosened" in str(weakenings("a.cjs", text.encode(), text.replace("equal(f(), 1)", "assert(f())").encode()))
    tsx = "it('a', () => { expect(render(<A x={1} />)).toBe(1); });\n"
    assert "gone" in str(weakenings("a.tsx", tsx.encode(), b"it('a', () => { render(<A x={1} />); });\n"))


@pytest.mark.broad
@settings(max_examples=30, deadline=None)
@given(st.text(alphabet="(){}[]`'=>.,;$ \nitexpc", max_size=120), st.binary(max_size=120))
def test_any_two_texts_are_answered(before: str, after: bytes) -> None:
    assert isinstance(weakenings("a.ts", before.encode(), after), tuple)
    assert isinstance(weakenings("a.js", JEST.encode(), JEST.replace("6", before).encode()), tuple)


@pytest.mark.broad
@pytest.mark.slow
def test_much_text_takes_little_time() -> None:
    deep = "test('a', () => " + "(() => " * 400 + "1" + ")" * 400 + ");\n"
    chain = "test('a', () => { expect(1)" + ".not" * 1000 + ".toBe(1); });\n"
    assert isinstance(weakenings("a.js", deep.encode(), chain.encode()), tuple)
    assert isinstance(weakenings("a.js", chain.encode(), deep.encode()), tuple)
