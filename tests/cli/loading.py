"""What a command of the real program loads."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from kit import REDFIRST

if TYPE_CHECKING:
    from kit import Project


def loaded(project: Project, *words: str) -> set[str]:
    argv = [sys.executable, "-X", "importtime", str(REDFIRST), *words]
    done = subprocess.run(argv, cwd=project.root, env=project.environment(), capture_output=True, text=True, check=True)
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
