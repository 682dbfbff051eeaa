"""What does not type-check or cannot be parsed, with the real compiler and node's own parser; nothing is run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from languages.direct import write
from languages.nodes import VITEST, check_types, manifest

from pipeline.judge.evidence.observation import Observation, RunState

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

CONFIG = json.dumps(
    {"compilerOptions": {"strict": True, "module": "nodenext", "target": "es2022", "skipLibCheck": True}}
)


def wrong(seen: Observation) -> dict[str, str]:
    assert seen.state is RunState.COMPLETE, seen.detail
    return {error.path: error.fault.raised.kind for error in seen.collection_errors}


@pytest.mark.broad
def test_typescript_is_compiled_with_its_tests(tmp_path: Path) -> None:
    files = {
        "package.json": VITEST,
        "tsconfig.json": CONFIG,
        "src/greet.ts": "export function greet(name: string): string {\n  throw new Error('not implemented');\n}\n",
        "src/wrong.ts": "export const n: number = 'a';\n",
        "test/bye.test.ts": "import { bye } from '../src/greet.js';\nbye();\n",
        "test/module.test.ts": "import { x } from '../src/nowhere.js';\nx();\n",
        "test/method.test.ts": "class A {}\nnew A().polite();\n",
        "test/free.test.ts": "nobody();\n",
        "node_modules_not/x.ts": "export {};\n",
        "tools/broken.js": "const = 1;\n",
        "tools/fine.mjs": "export const x = await import('y');\n",
    }
    seen = check_types(write(tmp_path, files), "vitest")
    assert wrong(seen) == {
        "src/wrong.ts": "TS2322",
        "test/bye.test.ts": "TS2305",
        "test/module.test.ts": "TS2307",
        "test/method.test.ts": "TS2339",
        "test/free.test.ts": "TS2304",
        "tools/broken.js": "SyntaxError",
    }
    missing = {error.path: error.fault.missing for error in seen.collection_errors}
    told = {path: (one.name, one.owner, one.first_party) for path, one in missing.items() if one is not None}
    assert told == {
        "test/bye.test.ts": ("bye", "src/greet", True),
        "test/module.test.ts": ("src/nowhere", "", True),
        "test/method.test.ts": ("polite", "A", True),
        "test/free.test.ts": ("nobody", "", False),
    }
    by_path = {error.path: error.fault for error in seen.collection_errors}
    assert by_path["test/module.test.ts"].raised.is_a("ImportError")
    assert (by_path["test/method.test.ts"].frames[0].line, seen.command) == (2, ("npx", "tsc", "--noEmit"))


@pytest.mark.broad
def test_what_the_compiler_cannot_parse(tmp_path: Path) -> None:
    files = {"package.json": VITEST, "tsconfig.json": CONFIG, "src/a.ts": "const = 1;\n"}
    seen = check_types(write(tmp_path, files), "vitest")
    assert wrong(seen) == {"src/a.ts": "TS1134"}
    assert seen.collection_errors[0].fault.raised.is_a("SyntaxError")


def test_javascript_is_parsed_as_node_reads_it(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    files = {
        "package.json": manifest(),
        "common.js": f"require('node:fs').writeFileSync({json.dumps(str(ran))}, '');\nreturn;\n",
        "module.mjs": "export const x = await 1;\n",
        "either.js": "import './common.js';\n",
        "strict.cjs": "import './common.js';\n",
        "broken.mjs": "export const = 1;\n",
        "script": "#!/usr/bin/env node\n",
        "start.js": "#!/usr/bin/env node\nconsole.log(1);\n",
        "markup.jsx": "export const a = <b>c</b>;\n",
        "torn.jsx": "export const a = <b>c;\n",
        "package/package.json": '{"type": "module"}',
    }
    seen = check_types(write(tmp_path, files))
    assert wrong(seen) == dict.fromkeys(("broken.mjs", "strict.cjs", "torn.jsx"), "SyntaxError")
    assert seen.collection_errors[0].fault.frames[-1].path == "broken.mjs"
    assert not ran.exists()
