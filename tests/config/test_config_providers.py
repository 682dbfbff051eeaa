from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from config.reading import CUSTOM, of, read, refused

from pipeline.agents.gateway.providers import provider_of, require_providers
from pipeline.config.layers import Flags
from pipeline.config.providers import BUILTIN, CredentialHeader, Provider, is_loopback
from pipeline.config.trust import require_trust
from pipeline.errors import UserError
from pipeline.judge.policy.roles import Network
from pipeline.outcomes import Reason
from pipeline.vocabulary import Role

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", BUILTIN)
def test_a_built_in_provider_needs_no_table(tmp_path: Path, name: str) -> None:
    config = read(tmp_path, f'[agents]\nprovider = "{name}"\n').config
    name_of_it, provider = provider_of(config, Role.MAKE, config.agent(Role.MAKE))
    assert name_of_it == name
    local = is_loopback(urlsplit(provider.url).hostname or "")
    assert provider.url.startswith("https://") is not local
    assert (provider.credential_env is None) is local
    assert provider.paths


def test_a_provider_of_ones_own_is_described_in_a_table(tmp_path: Path) -> None:
    assert of(read(tmp_path, CUSTOM).config, Role.MAKE) == Provider(
        url="https://models.example.org/api",
        credential_env="ACME_KEY",
        header=CredentialHeader.BEARER,
        paths=("POST /v1/chat", "GET /v1/*"),
    )


def test_single_keys_of_a_provider_are_laid_over_the_built_in_one(tmp_path: Path) -> None:
    loaded = read(
        tmp_path,
        '[agents]\nprovider = "openai"\n[providers.openai]\nmax_requests = 5\ntimeout_s = 5\n',
        user="[providers.openai]\nmax_requests = 6\n",
        environ={"REDFIRST_PROVIDERS__OPENAI__CREDENTIAL_ENV": "WORK_KEY"},
        flags=Flags.parse(["providers.openai.max_response_bytes=7"]),
    )
    provider = of(loaded.config, Role.CHECK)
    assert (provider.max_requests, provider.timeout_s, provider.credential_env) == (6, 5, "WORK_KEY")
    assert (provider.max_response_bytes, provider.url) == (7, BUILTIN["openai"].url)
    said = {key: str(origin) for key, origin in loaded.origins.items() if key.startswith("providers.")}
    assert said == {
        "providers.openai.credential_env": "REDFIRST_PROVIDERS__OPENAI__CREDENTIAL_ENV",
        "providers.openai.max_requests": f"{tmp_path}/redfirst/config.toml:2",
        "providers.openai.max_response_bytes": "--set providers.openai.max_response_bytes",
        "providers.openai.timeout_s": "redfirst.toml:5",
    }


@pytest.mark.parametrize(
    "url",
    [
        "http://models.example.org",
        "http://10.0.0.1:8080",
        "http://localhost.example.org",
        "http://127.0.0.1.example.org",
        "http://127.0.0.1@example.org",
        "https://user:secret@example.org",
        "https://example.org?x=1",
        "https://example.org/#x",
        "https://example.org/",
        "https://example.org/a/../b",
        "https://example.org:99999",
        "https://exam\\nple.org",
        "ftp://example.org",
        "example.org",
        "",
    ],
)
def test_a_url_that_could_lead_elsewhere_is_refused(tmp_path: Path, url: str) -> None:
    error = refused(tmp_path, f'[providers.acme]\nurl = "{url}"\n')
    assert error.pointer == "/providers/acme/url"
    assert "must be" in error.message
    assert not url or url not in error.message


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8080", "http://localhost/v1", "http://[::1]:1", "https://[2001:db8::1]"]
)
def test_plain_http_is_for_this_machine_only(tmp_path: Path, url: str) -> None:
    table = read(tmp_path, f'[providers.acme]\nurl = "{url}"\n').config.providers["acme"]
    assert table.url == url


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ('[providers.acme]\nurls = "https://x"', "/providers/acme/urls"),
        ('[providers.acme]\nheader = "cookie"', "/providers/acme/header"),
        ("[providers.acme]\npaths = []", "/providers/acme/paths"),
        ('[providers.acme]\npaths = ["/v1/messages"]', "/providers/acme/paths/0"),
        ('[providers.acme]\npaths = ["DELETE /v1/files/*"]', "/providers/acme/paths/0"),
        ('[providers.acme]\npaths = ["GET /v1/../x"]', "/providers/acme/paths/0"),
        ('[providers.acme]\npaths = ["GET /v1*"]', "/providers/acme/paths/0"),
        ('[providers.acme]\npaths = ["GET /v1/%2e"]', "/providers/acme/paths/0"),
        ("[providers.acme]\nmax_requests = 0", "/providers/acme/max_requests"),
        ("[providers.acme]\ntimeout_s = 1.5", "/providers/acme/timeout_s"),
        ('[providers]\nacme = "https://x"', "/providers/acme"),
        ("[providers.'A b']\ntimeout_s = 1", "/providers/A b/[key]"),
        ('[agents]\nprovider = "A b"', "/agents/provider"),
    ],
)
def test_a_provider_that_does_not_fit_is_refused_with_its_pointer(tmp_path: Path, text: str, pointer: str) -> None:
    assert refused(tmp_path, text).pointer == pointer


def test_a_credential_in_place_of_its_variables_name_is_refused_and_not_repeated(tmp_path: Path) -> None:
    error = refused(tmp_path, '[providers.anthropic]\ncredential_env = "sk-ant-abc"\n')
    assert error.pointer == "/providers/anthropic/credential_env"
    assert "sk-ant-abc" not in error.message + str(error.details)


def test_every_key_of_a_provider_in_a_repository_needs_trust(tmp_path: Path) -> None:
    caps = "max_requests = 1\nmax_request_bytes = 1\nmax_response_bytes = 1\ntimeout_s = 1\n"
    more = 'api = ["chat"]\nmodels.small = "m"\n'
    loaded = read(tmp_path, CUSTOM + caps + more + '[agents.check]\nprovider = "openai"\n')
    assert {item.key for item in loaded.widening} == {
        "agents.network",
        "agents.provider",
        "agents.check.provider",
        *(f"providers.acme.{key}" for key in Provider.model_fields if key != "models"),
        "providers.acme.models.small",
    }


def test_a_repository_cannot_send_the_users_key_elsewhere(tmp_path: Path) -> None:
    loaded = read(
        tmp_path,
        '[providers.anthropic]\nurl = "https://example.org"\n',
        user='[agents]\nnetwork = "model"\nprovider = "anthropic"\n',
    )
    with pytest.raises(UserError, match=r"providers\.anthropic\.url") as caught:
        require_trust(loaded.widening, tmp_path, {"HOME": str(tmp_path)})
    assert caught.value.reason is Reason.UNTRUSTED


def test_a_role_with_network_model_needs_a_provider(tmp_path: Path) -> None:
    config = read(tmp_path, '[agents.make]\nnetwork = "model"\n').config
    with pytest.raises(
        UserError, match=r'network = "model" of make needs a provider.*provider = "anthropic" in'
    ) as caught:
        require_providers(config, {})
    assert (caught.value.pointer, caught.value.details["missing"]) == ("/agents/make/provider", "provider")


def test_a_provider_that_nobody_described_names_a_near_one(tmp_path: Path) -> None:
    config = read(tmp_path, '[agents]\nnetwork = "model"\nprovider = "antropic"\n').config
    with pytest.raises(UserError, match='"antropic" of orchestrator is not known\\. Did you mean "anthropic"'):
        require_providers(config, {})


def test_a_provider_that_is_described_in_part_names_what_is_missing(tmp_path: Path) -> None:
    text = '[agents]\nnetwork = "model"\nprovider = "acme"\n[providers.acme]\ncredential_env = "ACME_KEY"\n'
    with pytest.raises(UserError, match=r"\[providers.acme\] does not say url") as caught:
        require_providers(read(tmp_path, text).config, {})
    assert caught.value.pointer == "/providers/acme/url"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, "is not set"),
        ("", "is not set"),
        ("short", "holds no credential"),
        ("two words", "holds no credential"),
        ("line\r\nX-Evil: 1", "holds no credential"),
        ("sch\u00f6ner-key", "holds no credential"),
    ],
)
def test_a_missing_credential_is_told_before_the_run(tmp_path: Path, value: str | None, problem: str) -> None:
    environ = {} if value is None else {"ACME_KEY": value}
    with pytest.raises(UserError, match=problem) as caught:
        require_providers(read(tmp_path, CUSTOM).config, environ)
    assert "ACME_KEY" in caught.value.message
    assert "providers.acme.credential_env" in caught.value.message
    assert not value or value not in caught.value.message


def test_roles_without_network_model_need_nothing(tmp_path: Path) -> None:
    config = read(tmp_path, '[agents]\nnetwork = "open"\n[agents.make]\nnetwork = "none"\n').config
    require_providers(config, {})
    assert not [role for role in Role if config.agent(role).reaches is Network.MODEL]
