"""A configuration from its texts, for the tests of what it says of model services."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipeline.agents.gateway.providers import provider_of
from pipeline.config.load import Loaded, load
from pipeline.config.sources import RepositoryFile
from pipeline.errors import UserError
from pipeline.outcomes import Reason

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.config.layers import Flags
    from pipeline.config.model import Config
    from pipeline.config.providers import Provider
    from pipeline.vocabulary import Role

CUSTOM = """
[agents]
network = "model"
provider = "acme"
[providers.acme]
url = "https://models.example.org/api"
credential_env = "ACME_KEY"
header = "authorization: bearer"
paths = ["POST /v1/chat", "GET /v1/*"]
"""
KEY = "0123456789"


def of(config: Config, role: Role) -> Provider:
    return provider_of(config, role, config.agent(role))[1]


def read(
    tmp_path: Path, text: str = "", *, user: str = "", environ: dict[str, str] | None = None, flags: Flags | None = None
) -> Loaded:
    folder = tmp_path / "redfirst"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(user)
    file = RepositoryFile("redfirst.toml", text.encode(), tracked=True)
    variables = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), **(environ or {})}
    return load(tmp_path, environ=variables, repo_file=file, flags=flags)


def refused(tmp_path: Path, text: str) -> UserError:
    with pytest.raises(UserError) as caught:
        read(tmp_path, text)
    assert caught.value.reason is Reason.CONFIG
    return caught.value
