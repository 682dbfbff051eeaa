"""Test runners, compilers and type checkers that an agent's tool may run, and with which words (see `command_tables`).

What a project tests with: pytest, cargo, go, node's own runner, vitest, jest, and `npm test`. Each may choose tests and
say how much it prints; none may load other code, take another configuration, write elsewhere, or leave tests out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pipeline.policy.command_words import Danger, Operands, Tool, flags, refused, value

if TYPE_CHECKING:
    from collections.abc import Mapping

_NUMBER: Final = r"\d{1,6}"
_NAME: Final = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
_EXPRESSION: Final = r"[A-Za-z0-9_(\[][\w ()\[\].,:=<>+/'\"-]*"
_ANYTHING: Final = r"[^-@].*"
_WHEN: Final = r"auto|always|never|yes|no"

_PYTEST: Final = Tool(
    options={
        **flags("-q", "--quiet", "-v", "--verbose", "-x", "--exitfirst", "-s", "-l", "--showlocals", "--no-showlocals"),
        **flags("--co", "--collect-only", "--fixtures", "--markers", "--setup-show", "--setup-plan", "--full-trace"),
        **flags("--no-header", "--no-summary", "--disable-warnings", "--strict-markers", "--strict-config"),
        **flags("--runxfail", "--lf", "--last-failed", "--ff", "--failed-first", "--version", "-V", "-h", "--help"),
        **value(_EXPRESSION, "-k", "-m"),
        **value(_NUMBER, "--maxfail", "--durations", "--verbosity"),
        **value(r"fd|sys|no|tee-sys", "--capture"),
        **value(r"auto|long|short|line|native|no", "--tb"),
        **value(r"no|stdout|stderr|log|all", "--show-capture"),
        **value(r"[fEsxXpPaAwN]{1,12}", "-r", joined=True),
        **value(_WHEN, "--color"),
    },
    operands=Operands.TESTS,
    refused={
        **refused(Danger.CODE, "-p", "--import-mode", "--pyargs", "-W", "--pythonwarnings", "--pdbcls", "--pdb"),
        **refused(Danger.CODE, "--doctest-modules", "--trace"),
        **refused(Danger.CONFIG, "-c", "--config-file", "-o", "--override-ini", "--rootdir", "--confcutdir"),
        **refused(Danger.CONFIG, "--noconftest", "-n", "--numprocesses"),
        **refused(Danger.WRITES, "--junitxml", "--junit-xml", "--basetemp", "--log-file", "--report-log", "--debug"),
        **refused(Danger.WRITES, "--cov", "--cov-report", "--cache-clear", "--html", "--pastebin"),
        **refused(Danger.HIDES, "--deselect", "--ignore", "--ignore-glob", "--keep-duplicates"),
    },
)

_CARGO_REFUSED: Final = {
    **refused(Danger.CONFIG, "--config", "-Z", "--target"),
    **refused(Danger.ELSEWHERE, "-C", "--manifest-path", "--lockfile-path"),
    **refused(Danger.WRITES, "--target-dir", "--artifact-dir", "--out-dir", "--timings", "--fix", "--allow-dirty"),
}
_CARGO_COMMON: Final = {
    **flags("-q", "--quiet", "-v", "--verbose", "--workspace", "--all", "--release", "-r", "--keep-going", "--help"),
    **flags("--lib", "--bins", "--examples", "--tests", "--benches", "--all-targets", "-h"),
    **flags("--all-features", "--no-default-features", "--locked", "--offline", "--frozen"),
    **value(_NAME, "-p", "--package", "--exclude", "--bin", "--example", "--test", "--bench"),
    **value(r"[\w,/ -]+", "-F", "--features"),
    **value(_NUMBER, "-j", "--jobs"),
    **value(_WHEN, "--color"),
    **value(r"human|short|json", "--message-format"),
}
_LIBTEST: Final = Tool(
    options={
        **flags("--nocapture", "--no-capture", "--show-output", "--exact", "--ignored", "--include-ignored"),
        **flags("--list", "-q", "--quiet", "-h", "--help"),
        **value(_NUMBER, "--test-threads"),
        **value(r"[\w:]+", "--skip"),
        **value(_WHEN, "--color"),
        **value(r"pretty|terse", "--format"),
    },
    operands=Operands.NAMES,
    refused={
        **refused(Danger.WRITES, "--logfile"),
        **refused(Danger.CONFIG, "-Z", "--shuffle", "--report-time", "--force-run-in-process"),
    },
)
_LINTS: Final = Tool(
    options=value(r"[a-z][a-z0-9_:-]*", "-D", "-W", "-A", "-F", "--deny", "--warn", "--allow", "--forbid", joined=True),
    operands=Operands.NONE,
)
_CARGO_TEST: Final = {**_CARGO_COMMON, **flags("--doc", "--no-run", "--no-fail-fast")}
_GO_TEST: Final = Tool(
    options={
        **flags("-v", "-short", "-race", "-failfast", "-json", "-cover"),
        **value(_ANYTHING, "-run", "-skip", "-list", "-bench"),
        **value(_NUMBER, "-count", "-parallel", "-cpu"),
        **value(r"\d{1,6}(ms|s|m)", "-timeout"),
    },
    operands=Operands.PACKAGES,
    bundles=False,
    short_equals=True,
    refused={
        **refused(Danger.EXECUTES, "-exec", "-toolexec", "-vettool", "-args"),
        **refused(Danger.WRITES, "-o", "-c", "-coverprofile", "-cpuprofile", "-memprofile", "-trace", "-outputdir"),
        **refused(Danger.CONFIG, "-mod", "-modfile", "-overlay", "-ldflags", "-gcflags", "-tags"),
        **refused(Danger.ELSEWHERE, "-C"),
    },
)

_NODE_TEST: Final = Tool(
    options={
        **flags("--test-only", "--test-force-exit", "--no-warnings", "--experimental-strip-types"),
        **value(_ANYTHING, "--test-name-pattern", "--test-skip-pattern"),
        **value(r"spec|tap|dot", "--test-reporter"),
        **value(_NUMBER, "--test-concurrency", "--test-timeout"),
    },
    bundles=False,
    refused={
        **refused(Danger.CODE, "-r", "--require", "--import", "--loader", "--experimental-loader", "-e", "--eval"),
        **refused(Danger.WRITES, "--test-reporter-destination", "--test-update-snapshots"),
        **refused(Danger.CONFIG, "--env-file", "--experimental-config-file"),
    },
)
_VITEST: Final = Tool(
    options={
        **flags("--run", "--silent", "--hideSkippedTests", "--no-color", "--no-coverage", "--expandSnapshotDiff"),
        **value(_EXPRESSION, "-t", "--testNamePattern"),
        **value(r"default|verbose|dot|tap|tap-flat|json|basic", "--reporter"),
        **value(_NUMBER, "--bail", "--testTimeout", "--maxWorkers", "--maxConcurrency"),
    },
    bundles=False,
    refused={
        **refused(Danger.CONFIG, "-c", "--config", "-r", "--root", "--dir", "--mode", "--project", "--workspace"),
        **refused(Danger.CODE, "--environment", "--pool", "--globals", "--execArgv", "--alias"),
        **refused(Danger.WRITES, "-u", "--update", "--outputFile", "--coverage", "--attachmentsDir", "--cache"),
        **refused(
            Danger.EXECUTES, "--browser", "--ui", "--open", "--api", "--inspect", "--inspectBrk", "--watch", "-w"
        ),
        **refused(Danger.HIDES, "--exclude", "--changed", "--shard", "--passWithNoTests"),
    },
)
_JEST: Final = Tool(
    options={
        **flags("--silent", "--verbose", "--runInBand", "-i", "--ci", "--bail", "-b", "--listTests", "--no-coverage"),
        **flags("--expand", "-e", "--noStackTrace", "--no-color"),
        **value(_EXPRESSION, "-t", "--testNamePattern"),
        **value(_NUMBER, "-w", "--maxWorkers", "--testTimeout"),
    },
    bundles=False,
    refused={
        **refused(Danger.CONFIG, "-c", "--config", "--rootDir", "--roots", "--projects", "--globals", "--preset"),
        **refused(Danger.CODE, "--setupFiles", "--setupFilesAfterEnv", "--globalSetup", "--globalTeardown"),
        **refused(Danger.CODE, "--env", "--testEnvironment", "--runner", "--testRunner", "--transform", "--resolver"),
        **refused(Danger.CODE, "--reporters", "--testSequencer", "--testResultsProcessor", "--filter"),
        **refused(Danger.WRITES, "-u", "--updateSnapshot", "--coverage", "--collectCoverage", "--coverageDirectory"),
        **refused(Danger.WRITES, "--outputFile", "--cacheDirectory", "--clearCache", "--init"),
        **refused(Danger.EXECUTES, "--watch", "--watchAll", "--watchman"),
        **refused(Danger.HIDES, "--testPathIgnorePatterns", "-o", "--onlyChanged", "--changedSince", "--shard"),
        **refused(Danger.HIDES, "--passWithNoTests"),
    },
)
_TSC: Final = Tool(
    options=flags("--noEmit", "--pretty", "--skipLibCheck", "--strict"),
    required=frozenset({"--noEmit"}),
    bundles=False,
    refused={
        **refused(Danger.CONFIG, "-p", "--project", "-b", "--build"),
        **refused(
            Danger.WRITES, "--outDir", "--outFile", "--init", "--incremental", "--generateTrace", "-w", "--watch"
        ),
        **refused(Danger.CODE, "--plugins"),
    },
)
_SCRIPT: Final = Tool(flags("--silent"), Operands.NONE, bundles=False)
"""The project's own `test` script, as it is: nothing can be said about words that it would be given."""

RUNNERS: Final[Mapping[tuple[str, ...], Tool]] = {
    ("pytest",): _PYTEST,
    ("python", "-m", "pytest"): _PYTEST,
    ("python3", "-m", "pytest"): _PYTEST,
    ("cargo", "test"): Tool(_CARGO_TEST, Operands.NAMES, rest=_LIBTEST, refused=_CARGO_REFUSED),
    ("cargo", "nextest", "run"): Tool(
        {**_CARGO_COMMON, **flags("--no-run", "--no-fail-fast", "--no-capture", "--nocapture")},
        Operands.NAMES,
        refused={**_CARGO_REFUSED, **refused(Danger.CONFIG, "--config-file", "--tool-config-file", "-E")},
    ),
    ("cargo", "check"): Tool(_CARGO_COMMON, Operands.NONE, refused=_CARGO_REFUSED),
    ("cargo", "build"): Tool(_CARGO_COMMON, Operands.NONE, refused=_CARGO_REFUSED),
    ("cargo", "clippy"): Tool(
        {**_CARGO_COMMON, **flags("--no-deps")}, Operands.NONE, rest=_LINTS, refused=_CARGO_REFUSED
    ),
    ("cargo", "fmt"): Tool(
        {**flags("--check", "--all", "-q", "--quiet", "-v", "--verbose"), **value(_NAME, "-p", "--package")},
        Operands.NONE,
        rest=Tool(flags("--check"), Operands.NONE),
        required=frozenset({"--check"}),
        refused=_CARGO_REFUSED,
    ),
    ("go", "test"): _GO_TEST,
    ("go", "vet"): Tool(flags("-v", "-json"), Operands.PACKAGES, bundles=False, refused=_GO_TEST.refused),
    ("node", "--test"): _NODE_TEST,
    ("npx", "vitest", "run"): _VITEST,
    ("npx", "vitest"): replace(_VITEST, required=frozenset({"--run"})),
    ("npx", "jest"): _JEST,
    ("npx", "tsc"): _TSC,
    **dict.fromkeys([("npm", "test"), ("npm", "run", "test"), ("pnpm", "test"), ("yarn", "test")], _SCRIPT),
}
"""By the words that a command begins with; the longer ones first."""
