"""Turns pydantic's errors into a user error with the place, the accepted words and the likely one (contract 1)."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, cast

from pipeline.config.keys import children, dotted
from pipeline.errors import UserError
from pipeline.outcomes import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

    from pipeline.config.sources import Origin

_TOLD: Final = 20


def did_you_mean(word: str, accepted: Sequence[str]) -> str | None:
    """Return the accepted word most similar to *word*, None if none is; of keys in one table only the ends count."""
    table, _, last = word.rpartition(".")
    beside = [each for each in accepted if table and each.rpartition(".")[0] == table]
    if not beside:
        return next(iter(get_close_matches(word, accepted, n=1)), None)
    near = get_close_matches(last, [each.rpartition(".")[2] for each in beside], n=1)
    elsewhere = [each for each in accepted if each.rpartition(".")[2] == last]
    return next((f"{table}.{each}" for each in near), next(iter(elsewhere), None))


def refusal(error: ValidationError, origin_of: Callable[[tuple[str, ...]], Origin]) -> UserError:
    """Return the user error for a validation error.

    Args:
        error: What the model refused.
        origin_of: Returns the place of a key.
    """
    found = error.errors(include_url=False)
    problems = [_problem(details, origin_of) for details in found[:_TOLD]]
    first = problems[0]
    left_out = len(found) - len(problems)
    told = [str(problem["message"]) for problem in problems]
    return UserError(
        "\n".join([*told, *([f"And {left_out} more."] if left_out else [])]),
        Reason.CONFIG,
        path=str(first["source"]),
        pointer=str(first["pointer"]),
        details={"problems": problems},
    )


_FORMS: Final = ("function-", "literal[", "tuple[", "union[")  # pydantic's: which of several forms a value has not


def _problem(details: ErrorDetails, origin_of: Callable[[tuple[str, ...]], Origin]) -> dict[str, object]:
    path = tuple(str(part) for part in details["loc"] if not str(part).startswith(_FORMS))
    origin = origin_of(path)
    problem: dict[str, object] = {"source": origin.source, "line": origin.line, "pointer": pointer(path)}
    accepted: list[str] = []
    match details["type"]:
        case "extra_forbidden":
            accepted, word = children(path[:-1]), path[-1]
            where = f"in [{dotted(path[:-1])}]" if path[:-1] else "at the top"
            what = f'unknown key "{word}" {where}'
        case "enum":
            accepted, word = _expected(details), str(details["input"])
            what = f'{dotted(path)}: "{word}" is not accepted'
        case _:
            word = ""
            # What an `env` table holds may be a secret, and so may what was taken for the name of a credential's
            # variable or of a server; a message is not the place to repeat it.
            seen = (
                ""
                if "env" in path or path[:1] in {("providers",), ("notify",), ("fleet",), ("triggers",)}
                else f", not {details['input']!r}"
            )
            what = f"{dotted(path)}: {details['msg'][0].lower()}{details['msg'][1:]}{seen}"
    near = did_you_mean(word, accepted)
    text = f"{origin}: {what}."
    text += f' Did you mean "{near}"?' if near else ""
    text += f" Accepted: {', '.join(accepted)}." if accepted else ""
    return problem | {"message": text, "accepted": accepted, "did_you_mean": near}


def _expected(details: ErrorDetails) -> list[str]:
    context: Mapping[str, object] = details.get("ctx", {})
    text = cast("str", context.get("expected", ""))
    return [word.strip().strip("'") for word in text.replace(" or ", ", ").split(",") if word.strip()]


def pointer(path: Sequence[str]) -> str:
    """Return *path* as a JSON pointer."""
    return "".join("/" + word.replace("~", "~0").replace("/", "~1") for word in path)
