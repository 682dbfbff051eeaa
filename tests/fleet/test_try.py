"""README's try of several machines: each command as it stands there, in another folder."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from postgres import needs_postgres

if TYPE_CHECKING:
    from collections.abc import Generator

ROOT = Path(__file__).parents[2]


@pytest.fixture
def place() -> Generator[Path]:
    """Return a new folder which the server reaches, too: it is an ordinary user's, also where root runs the tests."""
    folder = Path(tempfile.mkdtemp(prefix="redfirst-try-"))
    folder.chmod(0o755)
    yield folder / "fleet"
    subprocess.run([ROOT / "scripts/fleet-demo.sh", "--stop", folder / "fleet"], capture_output=True, check=False)
    shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.broad
@needs_postgres
def test_the_commands_of_the_readme_bring_both_runs_to_the_hub(place: Path) -> None:
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Several machines\n\n```\n")[2]
    commands = section.partition("```")[0].replace("/tmp/fleet", str(place))  # noqa: S108  (README's)
    done = subprocess.run(["bash", "-ec", commands], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    runs = re.findall(r"run-SLUGS-(\d) +over: completed, last written by ", done.stdout)
    assert sorted(runs) == ["1", "2"], done
