"""compose.yaml starts what there is, and its worker works in a home of its own; no container is started here."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from fleet.machines import fleet
from kit import REDFIRST
from postgres import database, needs_postgres

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts/fleet-worker.sh"


def test_what_compose_names_is_there() -> None:
    services: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    assert [*services] == ["postgres", "one", "two"]
    assert services["one"]["command"] == services["two"]["command"] == ["sh", f"/redfirst/scripts/{SCRIPT.name}"]
    (extras,) = re.findall(r'"/redfirst\[([a-z,]+)\]"', services["one"]["build"]["dockerfile_inline"])
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras.split(",")) <= known.keys()


@pytest.mark.slow
@needs_postgres
def test_a_worker_of_compose_makes_its_home_once_and_refuses_somebody_s(tmp_path: Path) -> None:
    (one,) = fleet(tmp_path, [[]])
    config, home = tmp_path / "config", tmp_path / "worker"
    home.mkdir()
    config.mkdir()
    (config / "config.toml").write_text('sandbox = "none"\n')
    env = {
        "HOME": str(home),
        "PATH": f"{REDFIRST.parent}:/usr/bin:/bin",
        "FLEET_CONFIG": str(config),
        "FLEET_HUB": str(one.hub),
        "FLEET_POSTGRES": database(),
    }

    def work(more: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        argv = ["sh", str(SCRIPT), "--once"]
        return subprocess.run(argv, env={**env, **more}, capture_output=True, text=True, timeout=120, check=False)

    for _ in range(2):
        done = work({})
        assert done.returncode == 0, done.stderr
        assert "Orders of this hub" in done.stdout, "it is one of the fleet"
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / ".gitconfig").write_text("")
    assert work({"HOME": str(theirs)}).returncode == 2
    assert [path.name for path in theirs.iterdir()] == [".gitconfig"]
