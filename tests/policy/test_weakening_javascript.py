"""What a change of JavaScript or TypeScript tests loosens is told in words; an honest change is told nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.languages.sources.weakening import added, weakenings

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
    assert.equal(total([]), 0);
  });
});
"""


def told(old: str, new: str, text: str, path: str) -> list[str]:
    assert old in text, old
    return [str(line) for line in weakenings(path, text.encode(), text.replace(old, new).encode())]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (SUM, "", "cart > is summed: 1 of 4 assertions are gone"),
        ("expect(sum).toBe(6)", "expect(sum).toBeTruthy()", "loosened from toBe to toBeTruthy"),
        ("expect(sum).toBe(6)", "expect(sum).toBeDefined()", "loosened from toBe to toBeDefined"),
        ("expect(sum).toBe(6)", "expect(sum).toBeGreaterThan(0)", "loosened from toBe to toBeGreaterThan"),
        ("expect(sum).toBe(6)", "expect(sum).not.toBe(7)", "loosened from toBe to not toBe"),
        ("expect(sum).toBe(6)", "expect(sum).toBe(7)", "another value is expected: 7 instead of 6"),
        ("expect(sum).toBe(6)", "expect(sum).toBe(sum)", "an assertion can never fail"),
        ("expect(sum).toBe(6)", "expect(true).toBe(true)", "an assertion can never fail"),
        ("expect(sum).toBe(6)", "expect(sum === 6 || sum === 7).toBe(true)", "loosened from toBe to one of several"),
        ("expect(sum).toBe(6)", "expect(String(sum)).toContain('6')", "about something else now: String(total"),
        ("expect(sum).toBe(6)", "if (sum) expect(sum).toBe(6)", "an assertion is made on a condition only"),
        ("expect(sum).toBe(6)", "try { expect(sum).toBe(6) } catch (e) {}", "a failing assertion is swallowed"),
        (SUM, "    if (process.env.CI) { return; }\n" + SUM, "it may end before its assertions"),
        (SUM, "    return;\n" + SUM, "4 of 4 assertions are gone"),
        ("0.3, 5", "0.3, 1", "a tolerance is raised"),
        ("toBeCloseTo(0.3, 5)", "toBeGreaterThan(0)", "loosened from toBeCloseTo"),
        ("toEqual({ id: 1, tags: ['a'] })", "toMatchObject({ id: 1 })", "loosened from toEqual to toMatchObject"),
        ("toEqual({ id: 1, tags: ['a'] })", "toEqual(expect.anything())", "may be anything now"),
        ("tags: ['a'] }", "tags: expect.any(Array) }", "may be anything now"),
        ("toEqual({ id: 1, tags: ['a'] })", "toMatchSnapshot()", "loosened from toEqual to toMatchSnapshot"),
        ("    await expect(load('y'))", "    expect(load('y'))", "an assertion can never fail"),
        (".toThrow('no y')", ".toThrow()", "loosened from toThrow to toThrow"),
        ("  }, 500);", "  }, 60000);", "its time limit is raised"),
        ("  }, 500);", "  });", "its time limit is raised"),
        ("it('is summed'", "it.skip('is summed'", "cart > is summed: skip is added"),
        ("it('is summed'", "xit('is summed'", "skip is added"),
        ("it('is summed'", "it.failing('is summed'", "failing is added"),
        ("it('is summed'", "it.only('is summed'", "only is added"),
        ("describe('cart'", "describe.skip('cart'", "cart > parses in a loop: skip is added"),
        ("it('is summed'", "it.todo('is summed'); const unused = ('is summed'", "todo is added"),
        (", ['2', 2], ['3', 3]])('parses", "])('parses", "cart > parses %s: 2 of 3 parametrised cases are dropped"),
        ("CASES = [['1', 1], ['2', 2], ['3', 3]]", "CASES = [['1', 1]]", "parses again %s: 2 of 3 parametrised cases"),
        ("    ${'5'} | ${5}\n", "", "from a table $input: 1 of 2 parametrised cases are dropped"),
        ("[['6', 6], ['7', 7]]", "[['6', 6]]", "an assertion is made for 1 instead of 2 values"),
        ("expect.assertions(2)", "expect.assertions(0)", "another value is expected: 0 instead of 2"),
        ("    cart = [1, 2, 3];\n", "", "cart > beforeEach: the fixture is emptied"),
        ("  it('is summed'", "  jest.mock('../src/app');\n  it('is summed'", "'../src/app' is replaced by a stand-in"),
        (SUM, "    jest.spyOn(app, 'total').mockReturnValue(6);\n" + SUM, "1 more thing is replaced by a stand-in"),
        ("describe('cart'", "jest.setTimeout(99999);\ndescribe('cart'", "holds for all its tests"),
        ("  expect(got).toBe(want);\n", "", "cart > parses again %s: 1 of 1 assertions are gone"),
        ("  expect(got).toBe(want);\n", "  expect(got).toBeDefined();\n", "loosened from toBe to toBeDefined"),
    ],
)
def test_what_is_loosened_is_said_with_expect(old: str, new: str, says: str) -> None:
    assert says in "; ".join(told(old, new, JEST, "src/app.test.ts"))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("assert.equal(sum, 6)", "assert.ok(sum)", "loosened from equal to truth"),
        ("assert.equal(sum, 6)", "assert.notEqual(sum, 7)", "loosened from equal to notEqual"),
        ("deepEqual(parse('[1]'), [1])", "assert(parse('[1]'))", "loosened from deepEqual to truth"),
        ("sum > 5 && sum < 7", "sum > 5", "1 of 6 assertions are gone"),
        ("load('y'), /no y/", "load('y')", "loosened from rejects to rejects"),
        ("assert.strictEqual(parse('1'), 1)", "parse('1')", "1 of 6 assertions are gone"),
        ("{ timeout: 1000 }", "{ timeout: 1000, skip: true }", "skip is added"),
        ("{ timeout: 1000 }", "{ timeout: 1000, todo: 'later' }", "todo is added"),
        ("{ timeout: 1000 }", "{ timeout: 90000 }", "its time limit is raised"),
        ("{ timeout: 1000 }, ", "", "its time limit is gone"),
        ("  const sum =", "  t.skip();\n  const sum =", "skip is added"),
        ("  const sum =", "  t.mock.method(app, 'total', () => 6);\n  const sum =", "replaced by a stand-in"),
    ],
)
def test_what_is_loosened_is_said_with_node(old: str, new: str, says: str) -> None:
    assert says in "; ".join(told(old, new, NODE, "test/app.test.mjs"))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (".to.equal(3)", ".to.exist", "loosened from equal to exist"),
        (".to.equal(3)", ".to.be.above(0)", "loosened from equal to above"),
        (".to.deep.equal([1])", ".to.be.an('array')", "loosened from equal to an"),
        ("expect(ready()).to.be.true", "expect(ready()).to.be.ok", "loosened from true to ok"),
        ("    expect(ready()).to.be.true;\n", "", "1 of 4 assertions are gone"),
        ("assert.equal(total([]), 0)", "assert.exists(total([]))", "loosened from equal to exists"),
        ("  it('is summed', function () {", "  it('is summed', function () {\n    this.skip();", "skip is added"),
        ("  it('is summed', function () {", "  it('is summed', function () {\n    this.timeout(60000);", "time limit"),
    ],
)
def test_what_is_loosened_is_said_with_chai(old: str, new: str, says: str) -> None:
    assert says in "; ".join(told(old, new, CHAI, "test/app.spec.js"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(SUM, "    expect(\n      sum, // six\n    ).toBe(6)\n", id="layout"),
        pytest.param("const sum = total(cart);\n    expect(sum).toBe(6)", "expect(total(cart)).toBe(6)", id="inlined"),
        pytest.param("expect(sum).toBe(6)", "expect(sum).toStrictEqual(6)", id="as-strict"),
        pytest.param("expect(sum).toBe(6)", "expect(sum).toBe(6);\n    expect(total([])).toBe(0)", id="one-more"),
        pytest.param("expect(parse(input)).toBe(want);\n  });", "check(input, want);\n  });", id="by-the-helper"),
        pytest.param(
            "const got = parse(input);\n  expect(got).toBe(want)", "expect(parse(input)).toBe(want)", id="in-it"
        ),
        pytest.param(", ['3', 3]])('parses", ", ['3', 3], ['9', 9]])('parses", id="more-cases"),
        pytest.param(
            "['1', 1], ['2', 2], ['3', 3]])('parses", "['3', 3], ['2', 2], ['1', 1]])('parses", id="reordered"
        ),
        pytest.param("    cart = [1, 2, 3];\n", "    cart = [1, 2, 3];\n    reset();\n", id="more-set-up"),
        pytest.param("  }, 500);", "  }, 200);", id="quicker"),
        pytest.param("'is summed'", "'is the sum of its things'", id="renamed"),
        pytest.param("0.3, 5", "0.3, 8", id="closer"),
        pytest.param("it('is summed'", "test('is summed'", id="another-word"),
        pytest.param("function check(input, want) {", "const check = (input: string, want: number) => {", id="arrow"),
        pytest.param(
            "load('x')).toEqual({ id: 1, tags: ['a'] })", "load('x')).toEqual({ id: 1, tags: ['a'], })", id="comma"
        ),
    ],
)
def test_an_honest_change_is_told_nothing(old: str, new: str) -> None:
    assert told(old, new, JEST, "src/app.test.ts") == []


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


def test_what_moves_to_another_file_is_not_gone() -> None:
    text = b"test('a', () => { expect(f()).toBe(1); });\n"
    assert weakenings("a.test.js", text, b"", added("b.test.js", b"", text)) == ()


@settings(max_examples=30, deadline=None)
@given(st.text(alphabet="(){}[]`'=>.,;$ \nitexpc", max_size=120), st.binary(max_size=120))
def test_any_two_texts_are_answered(before: str, after: bytes) -> None:
    assert isinstance(weakenings("a.ts", before.encode(), after), tuple)
    assert isinstance(weakenings("a.js", JEST.encode(), JEST.replace("6", before).encode()), tuple)


@pytest.mark.slow
def test_much_text_takes_little_time() -> None:
    deep = "test('a', () => " + "(() => " * 400 + "1" + ")" * 400 + ");\n"
    chain = "test('a', () => { expect(1)" + ".not" * 1000 + ".toBe(1); });\n"
    assert isinstance(weakenings("a.js", deep.encode(), chain.encode()), tuple)
    assert isinstance(weakenings("a.js", chain.encode(), deep.encode()), tuple)
