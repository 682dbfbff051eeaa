"""JavaScript and TypeScript projects go from issue to commits: RED, GREEN and stubs measured with their own runners."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from e2e.npm_packages import PROCESS_WARNING, unpack
from e2e.packages import Case, Edit
from e2e.sdists import Sdist
from e2e.shapes import TRACKER, answers, changed, done, evidence
from js_runners import installed_set, search_path
from kit import Project, make_project

if TYPE_CHECKING:
    from kit import Entry

pytestmark = pytest.mark.slow

AGENT = Path(__file__).with_name("agents") / "known_answer.py"

FORMAT = """    let formatted
    if (a && b && c) {
      formatted = format(message, a, b, c)
    } else if (a && b) {
      formatted = format(message, a, b)
    } else if (a) {
      formatted = format(message, a)
    } else {
      formatted = message
    }
    return formatted
"""
FALSY = Case(
    Sdist(PROCESS_WARNING.name, PROCESS_WARNING.version, PROCESS_WARNING.sha256),
    "A falsy value is interpolated like any other",
    "`format(0)` of a warning `Hello %s` returns `Hello %s`, since values are taken for missing when they are falsy.",
    Edit("index.js", FORMAT, "    return format(message, ...[a, b, c].filter((value) => value !== undefined))\n"),
    Edit(
        "test/emit-interpolated-string.test.js",
        "",
        """
for (const value of [0, false, null]) {
  test(`the falsy value ${value} is interpolated`, t => {
    const warning = createWarning({ name: 'TestDeprecation', code: 'CODE', message: 'Hello %s' })
    t.assert.strictEqual(warning.format(value), `Hello ${value}`)
  })
}

test('without a value the message is as it is', t => {
  const warning = createWarning({ name: 'TestDeprecation', code: 'CODE', message: 'Hello %s' })
  t.assert.strictEqual(warning.format(), 'Hello %s')
})
""",
    ),
    frozenset(
        f"test/emit-interpolated-string.test.js::the falsy value {value} is interpolated"
        for value in ("0", "false", "null")
    ),
)
GUARD = "test/emit-interpolated-string.test.js::without a value the message is as it is"


@pytest.fixture(scope="session")
def cache(pytestconfig: pytest.Config) -> Path:
    """Return where archives are kept between sessions; there are never more than the pinned ones."""
    return Path(pytestconfig.cache.mkdir("npm-packages"))


def red_of(project: Project) -> dict[str, str]:
    return {entry: found["cls"] for entry, found in evidence(project, "task-1.json")["ledger"]["red"].items()}


def make(tmp_path: Path, files: dict[str, str], runners: str) -> Project:
    """Return a project whose packages are installed in the worktree."""
    project = make_project(tmp_path, {**files, ".gitignore": "node_modules\n", **TRACKER})
    (project.root / "node_modules").symlink_to(installed_set(runners) / "node_modules")
    project.env["PATH"] = f"{Path(sys.executable).parent}:{search_path(runners)}"
    return project


def node_test(folder: Path) -> dict[str, bool]:
    """Return how each test of a checkout ends, as plain node tells."""
    done = subprocess.run(
        ["node", "--test", "--test-reporter=tap"], cwd=folder, capture_output=True, text=True, check=False
    )
    lines = (line.strip().removesuffix(" # SKIP") for line in done.stdout.splitlines())
    marked = [line for line in lines if line.startswith(("ok ", "not ok "))]
    return {line.partition(" - ")[2]: line.startswith("ok ") for line in marked}


@pytest.mark.broad
def test_an_issue_of_a_real_package_becomes_commits_that_prove_themselves(cache: Path, tmp_path: Path) -> None:
    installed_set("node")
    readme = f"# Issues\n\n## Core\n- [ ] [GAL-1](GAL-1.md) {FALSY.title}\n"
    tracker = {"TODO/GAL-1.md": FALSY.issue, "TODO/README.md": readme, ".gitignore": "node_modules/\n"}
    project = make_project(tmp_path, tracker)
    unpack(PROCESS_WARNING, cache, project.root)
    project.commit("process-warning")
    (project.root / "node_modules").mkdir()  # what it needs for development is not needed by its tests
    told = project.home / "answers.json"
    report = {"verdict": "TESTS_READY", "tests": [{"id": GUARD, "expected": "GUARD"}]}
    entries = [
        {**entry, "report": report} if entry["when"].get("kind") == "write-tests" else entry
        for entry in FALSY.answers()
    ]
    told.write_text(json.dumps(entries), encoding="utf-8")
    argv = [sys.executable, str(AGENT), str(told)]
    read = json.dumps([str(AGENT), str(told)])
    project.configure(f'[agents]\nbackend = "command"\nargv = {json.dumps(argv)}\nread = {read}\n')

    done(project)

    assert red_of(project) == dict.fromkeys(FALSY.new_ids, "ASSERTION_MISMATCH")
    assert changed(project, "HEAD~1") == [FALSY.code.path, FALSY.tests.path]
    seen = evidence(project, "green-1.json")
    assert {entry for entry in seen["records"] if entry.startswith("test/emit-interpolated")} >= FALSY.new_ids
    # a stranger finds the same in the commits alone
    project.git("checkout", "--quiet", "HEAD~1")
    names = {entry.partition("::")[2] for entry in FALSY.new_ids}
    assert {name: node_test(project.root)[name] for name in names} == dict.fromkeys(names, True)
    project.git("checkout", "--quiet", "HEAD~1", "--", FALSY.code.path)
    assert {name: node_test(project.root)[name] for name in names} == dict.fromkeys(names, False)


GREET = """export interface Person {
  name: string;
}

/** Greets. */
export function greet(person: Person): string {
  return `Hello, ${person.name}!`;
}
"""
GREET_DONE = GREET.replace(
    "  return", "  if (person.name === '') {\n    throw new RangeError('a name is needed');\n  }\n  return"
)
OLD = """import { expect, it } from 'vitest';

import { greet } from '../src/greet';

it('greets by name', () => {
  expect(greet({ name: 'Ada' })).toBe('Hello, Ada!');
});
"""
NEW = """
it('refuses an empty name', () => {
  expect(() => greet({ name: '' })).toThrow(RangeError);
});
"""
TYPESCRIPT = {
    "package.json": json.dumps(
        {
            "name": "greet",
            "type": "module",
            "scripts": {"test": "vitest run"},
            "devDependencies": {"vitest": "4", "typescript": "5"},
        }
    ),
    "tsconfig.json": json.dumps(
        {"compilerOptions": {"strict": True, "module": "esnext", "moduleResolution": "bundler", "target": "es2022"}}
    ),
    "vitest.config.ts": "import { defineConfig } from 'vitest/config';\n\n"
    "export default defineConfig({ test: { include: ['test/**/*.test.ts'] } });\n",
    "src/greet.ts": GREET,
    "test/greet.test.ts": OLD,
}


def test_a_typescript_project_with_vitest(tmp_path: Path) -> None:
    project = make(tmp_path, TYPESCRIPT, "vitest")
    project.use_script(answers(TYPESCRIPT, {"test/greet.test.ts": OLD + NEW}, {"src/greet.ts": GREET_DONE}))
    done(project)
    assert red_of(project) == {"test/greet.test.ts::refuses an empty name": "ASSERTION_MISMATCH"}
    assert changed(project, "HEAD~1") == ["src/greet.ts", "test/greet.test.ts"]


BYE = "\n/** Says good bye. */\nexport function bye(person: Person): string {\n  return `Bye, ${person.name}!`;\n}\n"
BYE_STUB = BYE.replace("return `Bye, ${person.name}!`", "throw new Error('not implemented')")
BYE_TEST = """import { expect, it } from 'vitest';

import { bye } from '../src/greet';

it('says good bye', () => {
  expect(bye({ name: 'Ada' })).toBe('Bye, Ada!');
});
"""
SYMBOL = {"path": "src/greet.ts", "name": "bye", "new": True}


@pytest.mark.broad
def test_a_new_function_in_a_new_test_file(tmp_path: Path) -> None:
    project = make(tmp_path, TYPESCRIPT, "vitest")
    project.use_script(
        answers(TYPESCRIPT, {"test/bye.test.ts": BYE_TEST}, {"src/greet.ts": GREET + BYE}, symbols=[SYMBOL])
    )
    done(project)
    assert red_of(project) == {"test/bye.test.ts::says good bye": "MISSING_BEHAVIOR"}
    assert changed(project, "HEAD~1") == ["src/greet.ts", "test/bye.test.ts"]


@pytest.mark.broad
def test_a_new_module_is_red_on_credit_and_fails_on_stubs(tmp_path: Path) -> None:
    project = make(tmp_path, TYPESCRIPT, "vitest")
    test = BYE_TEST.replace("../src/greet", "../src/bye")
    code = {"src/bye.ts": f"import type {{ Person }} from './greet';\n{BYE}"}
    symbol = {**SYMBOL, "path": "src/bye.ts"}
    project.use_script(answers(TYPESCRIPT, {"test/bye.test.ts": test}, code, symbols=[symbol]))
    done(project)
    assert red_of(project) == {"test/bye.test.ts": "MISSING_BEHAVIOR"}
    assert evidence(project, "task-1.json")["green"]["stub_failures"] == ["test/bye.test.ts::says good bye"]


@pytest.mark.broad
def test_stub_first(tmp_path: Path) -> None:
    project = make(tmp_path, TYPESCRIPT, "vitest")
    entries: list[Entry] = answers(
        TYPESCRIPT, {"test/bye.test.ts": BYE_TEST}, {"src/greet.ts": GREET + BYE}, symbols=[SYMBOL]
    )
    computed = {"src/greet.ts": GREET + BYE.replace("return", "console.log(person);\n  return")}
    stubbed = {"result": "COMPLETE", "summary": "bye is there, as a stub"}
    passes: list[Entry] = [
        {"when": {"kind": "stub"}, "files": files, "report": stubbed}
        for files in (computed, {"src/greet.ts": GREET + BYE_STUB})
    ]
    project.use_script([*entries[:5], *passes, *entries[5:]], "[stub_first]\nnode = true\n")
    done(project)
    assert "stub/STUB_DIRTY" in project.rows()
    assert red_of(project) == {"test/bye.test.ts::says good bye": "MISSING_BEHAVIOR"}
    assert changed(project, "HEAD~2") == ["src/greet.ts"]
    assert changed(project, "HEAD~1") == ["src/greet.ts", "test/bye.test.ts"]


@pytest.mark.broad
def test_a_weak_test_is_written_again(tmp_path: Path) -> None:
    project = make(tmp_path, TYPESCRIPT, "vitest")
    weak = NEW.replace("expect(() => greet({ name: '' })).toThrow(RangeError)", "expect(true).toBe(false)")
    script = answers(TYPESCRIPT, {"test/greet.test.ts": OLD + weak}, {"src/greet.ts": GREET_DONE})
    again = {"test/greet.test.ts": OLD + NEW}
    script.insert(6, {"when": {"kind": "write-tests"}, "files": again, "report": script[5]["report"]})
    project.use_script(script)
    done(project)
    assert "write-tests/STRUCTURAL_ONLY" in project.rows()


@pytest.mark.broad
def test_who_implements_may_not_change_tests(tmp_path: Path) -> None:
    project = make(tmp_path, TYPESCRIPT, "vitest")
    loosened = {"src/greet.ts": GREET, "test/greet.test.ts": OLD + NEW.replace("toThrow(RangeError)", "not.toThrow()")}
    project.use_script(answers(TYPESCRIPT, {"test/greet.test.ts": OLD + NEW}, loosened))
    assert project.run().get("outcome") != "completed"
    assert project.git("log", "--format=%s", "-1") == "init"
