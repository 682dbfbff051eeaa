"""What an answer costs: by the user's own price, else by the known ones, else nobody knows."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pipeline.agents.gateway.usage import Tokens, cost_of
from pipeline.config.providers import PriceTable

TOOK = Tokens(input=1000, output=10, cache_read=500, cache_write=100)
PRICE = PriceTable(input=2, output=20, cache_read=0.5, cache_write=4)
LOCAL = "http://127.0.0.1:11434"


def test_a_price_of_the_users_own_holds_before_all_others() -> None:
    expected = (400 * 2 + 500 * 0.5 + 100 * 4 + 10 * 20) / 1e6
    assert cost_of("anthropic", "claude-sonnet-4-5", TOOK, {"claude-sonnet-4-5": PRICE}) == pytest.approx(expected)
    assert cost_of("mine", "m", TOOK, {"m": PRICE}, url=LOCAL) == pytest.approx(expected)


def test_cached_input_without_a_price_of_its_own_costs_what_input_does() -> None:
    assert cost_of("mine", "m", TOOK, {"m": PriceTable(input=2, output=20)}) == pytest.approx((2000 + 200) / 1e6)


def test_more_cached_than_was_read_costs_no_less_than_that() -> None:
    odd = Tokens(input=10, cache_read=500)
    assert cost_of("mine", "m", odd, {"m": PRICE}) == pytest.approx(250 / 1e6)


@pytest.mark.parametrize(
    ("named", "answered", "same"),
    [
        ("m", "m-2025-09-29", True),
        ("m", "m-20250929", True),
        ("m", "m@20250929", True),
        ("m", "m-latest", True),
        ("m", "m:latest", True),
        ("m-2025-09-29", "m-2025-09-29", True),
        ("m", "m-mini", False),
        ("m", "m-2", False),
        ("m", "M", False),
        ("m-2025-09-29", "m", False),
    ],
)
def test_a_model_is_known_with_the_date_that_its_service_adds(named: str, answered: str, *, same: bool) -> None:
    assert (cost_of("mine", answered, TOOK, {named: PRICE}) is not None) is same


@pytest.mark.parametrize(
    ("provider", "model", "url"),
    [
        ("anthropic", "claude-sonnet-4-5-20250929", None),
        ("anthropic", "claude-sonnet-4-5", "https://llm.example.org/anthropic"),
        ("work", "claude-sonnet-4-5", "https://api.anthropic.com"),
        ("openai", "gpt-5", "https://api.openai.com"),
        ("google", "gemini-2.5-flash", "https://generativelanguage.googleapis.com"),
        ("openrouter", "anthropic/claude-sonnet-4.5", "https://openrouter.ai/api"),
    ],
)
def test_known_models_of_known_services_have_a_price(provider: str, model: str, url: str | None) -> None:
    cost = cost_of(provider, model, TOOK, url=url)
    assert cost is not None
    assert cost > 0


@pytest.mark.parametrize(
    ("provider", "model", "tokens", "url"),
    [
        ("anthropic", "scripted", TOOK, None),
        ("anthropic", "gpt-5", TOOK, None),
        ("anthropic", "", TOOK, None),
        ("anthropic", "claude-sonnet-4-5", TOOK, LOCAL),
        ("anthropic", "claude-sonnet-4-5", TOOK, "http://[::1]:1"),
        ("ollama", "llama3", TOOK, LOCAL),
        ("mine", "gpt-5", TOOK, None),
        ("mine", "gpt-5", TOOK, "https://llm.example.org"),
        ("openai", "whisper-1", TOOK, None),
        ("openai", "gpt-5", Tokens(input=1, cache_read=500), None),
    ],
)
def test_what_nobody_knows_is_unknown_and_never_nothing(
    provider: str, model: str, tokens: Tokens, url: str | None
) -> None:
    assert cost_of(provider, model, tokens, url=url) is None


def test_prices_are_not_loaded_before_one_is_asked_for() -> None:
    imported = "pipeline.agents.gateway.usage, pipeline.agents.gateway.providers"
    program = f"import sys, {imported}; sys.exit('genai_prices' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
