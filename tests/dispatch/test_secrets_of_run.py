"""What a run must not write down: the variables of every agent that may be asked, and the login that one is shown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pipeline.agents.dispatch.transcript import secrets_of_run
from pipeline.config.load import load
from pipeline.config.sources import RepositoryFile

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = "rt_opaque.token-of/the+user=="


def secrets(tmp_path: Path, text: str) -> frozenset[str]:
    environ = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "REDFIRST_TRUST": "1"}
    loaded = load(tmp_path, environ=environ, repo_file=RepositoryFile("redfirst.toml", text.encode(), tracked=True))
    return secrets_of_run(tmp_path, environ, loaded.config)


@pytest.mark.parametrize(
    ("agent", "file"),
    [
        ('backend = "claude"', ".claude/.credentials.json"),
        ('backend = "codex"', ".codex/auth.json"),
        ('backend = "acp"\nprofile = "opencode"', ".local/share/opencode/auth.json"),
        ('backend = "acp"\nprofile = "gemini"', ".gemini/oauth_creds.json"),
    ],
    ids=["claude", "codex", "opencode", "gemini"],
)
def test_the_values_of_a_login_that_is_shown_are_known(agent: str, file: str, tmp_path: Path) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"type": "oauth", "all": [{"refresh": TOKEN}], "from": "https://auth.example.org/x"}))
    shown = f'[agents]\n{agent}\nnetwork = "open"\nlogin = true\n'
    assert secrets(tmp_path, shown) == {TOKEN}
    assert secrets(tmp_path, f"[agents.check]\n{agent}\n") == frozenset(), "nobody is shown it"
    path.write_text("no JSON")
    assert secrets(tmp_path, shown) == frozenset()
    path.unlink()
    assert secrets(tmp_path, shown) == frozenset()


def test_the_variables_of_a_spare_are_known(tmp_path: Path) -> None:
    text = '[agents]\nfallback = ["other"]\n[spares.other]\nenv = { SERVICE_TOKEN = "opaque-value-0123" }\n'
    assert secrets(tmp_path, text) == {"opaque-value-0123"}


def test_the_variables_of_tests_are_known(tmp_path: Path) -> None:
    assert secrets(tmp_path, '[toolchains.cargo.env]\nSERVICE_TOKEN = "opaque-value-0123"\n') == {"opaque-value-0123"}
