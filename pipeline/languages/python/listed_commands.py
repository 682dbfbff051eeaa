"""The commands of Python projects that an agent's tool may run (`policy.listed_commands`)."""

from __future__ import annotations

from typing import Final

from pipeline.policy.listed_commands import ListedCommand

_PYTEST: Final = (
    "-q --quiet -v --verbose -x --exitfirst -s -l --showlocals --no-showlocals --co --collect-only --fixtures --markers"
    " --setup-show --setup-plan --full-trace --no-header --no-summary --disable-warnings --strict-markers"
    " --strict-config --runxfail --lf --last-failed --ff --failed-first --version -V -h --help"
    " -k EXPRESSION -m EXPRESSION --maxfail NUMBER --durations NUMBER --verbosity NUMBER --capture fd|sys|no|tee-sys"
    " --tb auto|long|short|line|native|no --show-capture no|stdout|stderr|log|all -r [fEsxXpPaAwN]{1,12}"
    " --color auto|always|never|yes|no"
)
_RUFF: Final = (
    "-q --quiet -v --verbose --diff --no-cache --preview -h --help"
    " --output-format concise|full|json|json-lines|grouped|github|gitlab|pylint"
)

COMMANDS: Final = (
    *(ListedCommand(beginning, _PYTEST) for beginning in ("pytest", "python -m pytest", "python3 -m pytest")),
    ListedCommand(
        "ruff check",
        f"{_RUFF} --no-fix --statistics --exit-zero --select [A-Z0-9,]+ --ignore [A-Z0-9,]+ --extend-select [A-Z0-9,]+",
    ),
    ListedCommand("ruff format", f"{_RUFF} --check", required="--check --diff"),
    ListedCommand(
        "mypy",
        "--strict --pretty --no-incremental --show-error-codes --no-error-summary --ignore-missing-imports"
        " --show-column-numbers -h --help -V --version",
    ),
    ListedCommand("pyright", "--outputjson --stats --warnings --verbose -h --help --version --level error|warning"),
    ListedCommand("uv run", "--frozen --locked --offline --no-sync", is_wrapper=True),
)
