"""New addresses of an application in JavaScript: their tests fail for the right reason, whatever they use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from languages.direct import context_of, files_of, write
from languages.nodes import NODE, measure

from pipeline.judge.evidence.classify import classify
from pipeline.judge.evidence.red_classes import RedClass

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

FILES = {
    "package.json": NODE,
    "src/app.mjs": "export const app = new Map([['/total', 200]]);\n",
    "node_modules/said/package.json": '{"name": "said", "main": "index.cjs"}\n',
    "node_modules/said/index.cjs": """
        module.exports = (found) => { throw new Error('expected 200 "OK", got 404 "Not Found"'); };
        """,
    "test/new.test.mjs": """
        import assert from 'node:assert';
        import { beforeEach, describe, test } from 'node:test';
        import expects from 'said';
        import { app } from '../src/app.mjs';

        const top = app;
        const [{ other }] = [{ other: new Map() }];
        let agent;
        const get = (path) => top.get(path);
        function helped() { return get('/names'); }

        test('itself', () => assert.strictEqual(app.get('/names'), 200));
        test('constant', () => assert.strictEqual(top.get('/names'), 200));
        test('helper', () => assert.strictEqual(helped(), 200));
        test('of another', () => assert.strictEqual(other.get('/names'), 200));
        test('as supertest says it', () => expects(app.get('/names')));

        describe('set up', () => {
          beforeEach(() => { agent = app; });
          test('agent', () => assert.strictEqual(agent.get('/names'), 200));
        });
        """,
}


def test_an_address_that_is_not_there_yet_is_looked_for_through_whatever_the_test_uses(tmp_path: Path) -> None:
    root = write(tmp_path, FILES)
    observation = measure(root, trace=True)
    context = context_of(observation, files_of(root) - {"test/new.test.mjs"})
    found = {entry.partition("::")[2]: classify(one, context) for entry, one in observation.records.items()}
    looks = ("itself", "constant", "helper", "as supertest says it", "set up > agent")
    assert {name: (one.cls, one.legal) for name, one in found.items()} == {
        **dict.fromkeys(looks, (RedClass.ASSERTION_MISMATCH, True)),
        "of another": (RedClass.STRUCTURAL, False),
    }, [one.message for one in found.values()]
