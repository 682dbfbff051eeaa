"""The commands of JavaScript and TypeScript projects that an agent's tool may run (`policy.listed_commands`)."""

from __future__ import annotations

from typing import Final

from pipeline.policy.listed_commands import NO_OPERANDS, ListedCommand

_VITEST: Final = (
    "--run --silent --hideSkippedTests --no-color --no-coverage --expandSnapshotDiff -t EXPRESSION"
    " --testNamePattern EXPRESSION --reporter default|verbose|dot|tap|tap-flat|json|basic"
    " --bail NUMBER --testTimeout NUMBER --maxWorkers NUMBER --maxConcurrency NUMBER"
)
_TEST_SCRIPTS: Final = ("npm test", "npm run test", "pnpm test", "yarn test")
"""The commands for the project's own `test` script, without arguments: nothing is known about what it does with
them."""

COMMANDS: Final = (
    ListedCommand(
        "node --test",
        "--test-only --test-force-exit --no-warnings --experimental-strip-types --test-name-pattern TEXT"
        " --test-skip-pattern TEXT --test-reporter spec|tap|dot --test-concurrency NUMBER --test-timeout NUMBER",
    ),
    ListedCommand("npx vitest run", _VITEST),
    ListedCommand("npx vitest", _VITEST, required="--run"),
    ListedCommand(
        "npx jest",
        "--silent --verbose --runInBand -i --ci --bail -b --listTests --no-coverage --expand -e --noStackTrace"
        " --no-color -t EXPRESSION --testNamePattern EXPRESSION -w NUMBER --maxWorkers NUMBER --testTimeout NUMBER",
    ),
    ListedCommand("npx tsc", "--noEmit --pretty --skipLibCheck --strict", required="--noEmit"),
    *(ListedCommand(script, "--silent", NO_OPERANDS) for script in _TEST_SCRIPTS),
)
