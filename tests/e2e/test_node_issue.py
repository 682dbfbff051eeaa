"""JavaScript and TypeScript projects go from issue to commits: RED, GREEN and stubs measured with their own runners."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from e2e.shapes import TRACKER, answers, changed, done, evidence, red_of
from js_runners import installed_set, search_path
from kit import Project, make_project

if TYPE_CHECKING:
    from kit import Entry

pytestmark = pytest.mark.slow


def make(tmp_path: Path, files: dict[str, str], runners: str) -> Project:
    """Return a project whose packages are installed in the worktree."""
    project = make_project(tmp_path, {**files, ".gitignore": "node_modules\n", **TRACKER})
    (project.root / "node_modules").symlink_to(installed_set(runners) / "node_modules")
    project.env["PATH"] = f"{Path(sys.executable).parent}:{search_path(runners)}"
    return project


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
