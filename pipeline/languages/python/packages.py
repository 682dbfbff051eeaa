"""Finds the package to install when pytest does not know an option, setting or plugin that the project uses."""

from __future__ import annotations

import re
from typing import Final

_PACKAGES: Final = {
    "pytest-asyncio": ("--asyncio-", "asyncio_", "pytest_asyncio"),
    "pytest-benchmark": ("--benchmark-", "pytest_benchmark"),
    "pytest-cov": ("--cov", "--no-cov", "pytest_cov"),
    "pytest-django": (
        "--ds", "--dc", "--reuse-db", "--create-db", "--nomigrations", "--no-migrations", "DJANGO_", "django_",
        "pytest_django",
    ),
    "pytest-mock": ("mock_", "pytest_mock"),
    "pytest-random-order": ("--random-order", "random_order"),
    "pytest-randomly": ("--randomly-", "pytest_randomly", "randomly"),
    "pytest-rerunfailures": ("--reruns", "reruns", "pytest_rerunfailures"),
    "pytest-socket": ("--disable-socket", "--allow-hosts", "--allow-unix-socket", "pytest_socket"),
    "pytest-timeout": ("--timeout", "--session-timeout", "timeout", "pytest_timeout"),
    "pytest-xdist": ("-n", "--numprocesses", "--maxprocesses", "--dist", "xdist"),
}  # fmt: skip
"""Prefixes of the options, settings and modules of known packages."""
_UNKNOWN: Final = re.compile(
    r"unrecognized arguments: (?P<options>.+)"
    r"|Error importing plugin \"(?P<module>[^\"]+)\": No module named"
    r"|Unknown config option: (?P<setting>\S+)"
    r"|Missing required plugins: (?P<plugins>.+)"
)


def what_to_install(said: str) -> str:
    """Return a sentence on which packages to install, by a line of pytest's output; empty if none would help."""
    found = _UNKNOWN.search(said)
    if found is None:
        return ""
    if found["plugins"]:
        packages = [name.strip() for name in found["plugins"].split(",")]
    else:
        words = (found["options"] or found["module"] or found["setting"]).split()
        packages = [name for name, begins in _PACKAGES.items() if any(word.startswith(begins) for word in words)]
    if not packages:
        return "Install what brings it where the project's tests run, or take it out of pytest's settings"
    return f"Install {' and '.join(packages)} where the project's tests run"
