"""What a service speaks, which models it has, and what it needs of the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from config.reading import CUSTOM, KEY, of, read, refused

from pipeline.agents.gateway.providers import credential_of, provider_of, require_providers
from pipeline.config.providers import PATHS_OF, Api, CredentialHeader, Tier
from pipeline.errors import UserError
from pipeline.vocabulary import Role

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("api", "header", "paths"),
    [
        (None, CredentialHeader.BEARER, PATHS_OF[Api.CHAT]),
        ('["anthropic"]', CredentialHeader.X_API_KEY, PATHS_OF[Api.ANTHROPIC]),
        ('["google"]', CredentialHeader.X_GOOG_API_KEY, PATHS_OF[Api.GOOGLE]),
        ('["responses"]', CredentialHeader.BEARER, PATHS_OF[Api.RESPONSES]),
        (
            '["chat", "anthropic"]',
            CredentialHeader.BEARER,
            (*PATHS_OF[Api.CHAT], "POST /v1/messages", "POST /v1/messages/count_tokens"),
        ),
    ],
)
def test_the_dialects_of_a_service_say_where_it_is_asked_and_how(
    tmp_path: Path, api: str | None, header: CredentialHeader, paths: tuple[str, ...]
) -> None:
    text = '[agents]\nprovider = "acme"\n[providers.acme]\nurl = "https://example.org"\n'
    provider = of(read(tmp_path, text + (f"api = {api}\n" if api else "")).config, Role.MAKE)
    assert (provider.header, provider.paths) == (header, paths)


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ("api = []", "/providers/acme/api"),
        ('api = ["chat", "soap"]', "/providers/acme/api/1"),
        ('models = { huge = "m" }', "/providers/acme/models/huge/[key]"),
        ('models = { small = "-m" }', "/providers/acme/models"),
        ('models = { small = "two words" }', "/providers/acme/models"),
        ('models = { small = "" }', "/providers/acme/models"),
    ],
)
def test_dialects_and_models_that_do_not_fit_are_refused(tmp_path: Path, text: str, pointer: str) -> None:
    assert refused(tmp_path, f"[providers.acme]\n{text}\n").pointer == pointer


def test_models_are_laid_over_each_other_one_by_one(tmp_path: Path) -> None:
    loaded = read(
        tmp_path,
        '[agents]\nprovider = "openai"\n[providers.openai.models]\nsmall = "s-1"\nlarge = "l-1"\n',
        user='[providers.openai.models]\nlarge = "org/l:2@beta"\n',
        environ={"REDFIRST_PROVIDERS__OPENAI__MODELS__MEDIUM": "m-1"},
    )
    models = of(loaded.config, Role.MAKE).models
    assert models == {Tier.SMALL: "s-1", Tier.MEDIUM: "m-1", Tier.LARGE: "org/l:2@beta"}


def test_a_service_without_credential_needs_no_variable(tmp_path: Path) -> None:
    config = read(tmp_path, '[agents]\nnetwork = "model"\nprovider = "ollama"\n').config
    require_providers(config, {})
    name, provider = provider_of(config, Role.MAKE, config.agent(Role.MAKE))
    assert provider.credential_env is None
    assert credential_of(provider, name, {}) is None


def test_a_spare_needs_its_credential_as_well(tmp_path: Path) -> None:
    spare = '[agents.make]\nfallback = ["other"]\n[spares.other]\nprovider = "openai"\n'
    config = read(tmp_path, CUSTOM + spare).config
    with pytest.raises(UserError, match="OPENAI_API_KEY, which is not set"):
        require_providers(config, {"ACME_KEY": KEY})


def test_a_proxy_that_is_no_address_is_told_before_the_run(tmp_path: Path) -> None:
    environ = {"ACME_KEY": KEY, "HTTPS_PROXY": "socks5://user:hidden@127.0.0.1:1"}
    with pytest.raises(UserError, match="HTTPS_PROXY holds no address of an HTTP proxy") as caught:
        require_providers(read(tmp_path, CUSTOM).config, environ)
    assert "hidden" not in caught.value.message
