"""Words of JavaScript and TypeScript code that detects or ends its own tests: see `sources.forgery`."""

from __future__ import annotations

from typing import Final

from pipeline.testing.languages.sources.forgery import Words

_LOADS: Final = r"(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire(?:\.resolve)?\(\s*|\bgetBuiltinModule\(\s*)['\"`]"
_WATCHED: Final = r"(?:node:)?(?:assert(?:/strict)?|module)['\"`]"
_REST: Final = r"[^'\"`\n]*"
_RUNNERS: Final = "(?:node:test|vitest|jest|mocha|ava|tap|tape|jasmine|chai|expect|sinon)"
_PROCESS: Final = r"['\"](?:node:)?process['\"]"
_GLOBAL: Final = "(?:globalThis|global|window)"
_SHARED: Final = "(?:Object|Array|Function|Promise|Error|Reflect|process|expect|jest|vi)"
_EQUALITY: Final = r"(?:equals|isEqual|compare|valueOf|\[?Symbol\.(?:hasInstance|toPrimitive)\]?)"

WORDS: Final = Words(
    comment="//",
    words={
        "the test runner": (
            "globalThis.expect globalThis.test globalThis.jest globalThis.vi globalThis.__vitest* import.meta.vitest "
            "expect.extend jest.* vi.mock vi.doMock vi.spyOn vi.fn vi.stub* vi.hoisted"
        ),
        "how a test run is started": "JEST_WORKER_ID VITEST VITEST_* NODE_TEST_CONTEXT MOCHA_* process.execArgv",
        "the program that runs it": "require.main",
        "what the test runner hears": "process.send process.channel process.connected process._* parentPort",
        "the inside of the process": "process.binding",
        "how modules are loaded": "require.cache module.constructor registerHooks syncBuiltinESMExports",
        "what all modules share": "Symbol.for",
        "its callers": "prepareStackTrace captureStackTrace",
        "where relative names of files lead": "process.chdir",
    },
    shapes={
        "the test runner or the inside of the process, loaded": (
            rf"{_LOADS}(?:{_RUNNERS}(?:/{_REST})?|@(?:jest|vitest|testing-library)/{_REST}|jest-{_REST}"
            rf"|(?:node:)?(?:inspector|v8|vm)(?:/\w+)?)['\"`]"
        ),
        "an installed package by its file": rf"{_LOADS}{_REST}node_modules/{_REST}",
        "a hook of the test runner": r"(?<![\w.])(?:before|after)(?:Each|All)\(",
        "whether there are tests": (
            r"\btypeof\s+\(?(?:jest|vi|vitest|describe|it|test|expect)\b|\bNODE_ENV\b.{0,12}['\"]test['\"]"
        ),
        "what a test run prints": r"TAP version|\bnot ok \d+|(?<!\w)ok \d+\b|# Subtest",
        "a part of process under its own name": (
            rf"\b(?:send|channel|connected|_\w+)\b[^;{{}}]*\}}\s*(?:=\s*(?:{_GLOBAL}\.)?process\b|from\s*{_PROCESS})"
        ),
        "what changes how modules are loaded": r"\bregister\b[^;\n]*\bfrom\s*['\"](?:node:)?module['\"]",
        "all that is global": rf"\b(?:getOwnProperty\w+|ownKeys)\(\s*{_GLOBAL}\b",
        "another name, so that what is done to it is not seen": (
            rf"\b(?!{_SHARED}\b)\w+\s*=\s*(?:{_GLOBAL}\.)?{_SHARED}\s*(?:[;,]|$)"
            rf"|\bimport\s+(?:\*\s*as\s+)?(?!process\b)\w+\s+from\s*{_PROCESS}"
            rf"|\b(?!process\b)\w+\s*=\s*require\(\s*{_PROCESS}"
        ),
        "an object that answers whatever it is asked": r"\basymmetricMatch\b|\bnew\s+Proxy\b|\bProxy\.revocable\b",
        "what the tests load, too": rf"{_LOADS}{_WATCHED}\)[^\s=(]+\s*=(?![=>])",
        "the trace of an error": r"\bError\([^()\n]*\)\)?\.stack\b",
        "the end of the process": (
            r"\bprocess\.(?:exit|reallyExit)\(\s*(?:['\"]?0['\"]?|undefined)?\s*\)"
            r"|\bprocess\.(?:on|once|prependListener)\(\s*['\"](?:exit|beforeExit)['\"]"
        ),
        "what others have opened": r"\bwrite(?:v|File)?Sync\(\s*\d+|\bcreateWriteStream\([^)\n]*\bfd\s*:\s*\d+",
        "code that nobody reads": (
            rf"(?<![\w.])(?:{_GLOBAL}\.)?(?:eval|Function)\(|(?<![\w.])import\(\s*\w[^)\n]*|\beval\s*:\s*true\b"
        ),
        "the same answer for everything": (
            rf"(?<![\w.]){_EQUALITY}\s*(?:[:=]\s*)?\([^)]*\)[^{{;\n]*?(?:\{{\s*return|=>)\s*(?:true|false|\d+)\b"
        ),
    },
    shared="process console assert Object Array Function Promise Error globalThis.process",
    imports=rf"^.*{_LOADS}{_WATCHED}.*$",
    everyday=r"module\.exports\b",
)
