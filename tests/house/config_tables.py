"""Renders the keys of the configuration as tables of a page, from the models.

    PYTHONPATH=tests:. python tests/house/config_tables.py

renews them in docs/reference/configuration.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Final, cast, get_args, get_origin

from house.documents import ROOT
from pydantic import BaseModel

from pipeline.config.agents import AgentOverride, PmOverride
from pipeline.config.model import Config, Toolchain
from pipeline.config.tables import BudgetPart
from pipeline.matrix.routing.render import refresh

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo

PAGE: Final = ROOT / "docs" / "reference" / "configuration.md"
HEAD: Final = ("key", "accepts", "default", "meaning")
TITLES: Final = {
    "agents": "`[agents]`, `[agents.ROLE]`, `[spares.NAME]`",
    "budget": "`[budget]`, `[budget.roles.ROLE]`, `[budget.phases.PHASE]`",
    "providers": "`[providers.NAME]`",
    "prices": "`[prices.NAME]`",
    "notify": "`[notify.NAME]`",
    "quarantine": "`[[quarantine]]`",
    "triggers": "`[triggers.NAME]`",
    "": "At the top",
}
_WORDS: Final = {str: "text", int: "a number", float: "a number", bool: "true, false"}
_AGAIN: Final = (AgentOverride, PmOverride, BudgetPart, Toolchain)
"""Tables that have the keys of another one, or stand once for all toolchains."""


def tables() -> dict[str, list[tuple[str, str, str, str]]]:
    """Return the rows of each table, by its name in the file."""
    found: dict[str, list[tuple[str, str, str, str]]] = {}
    for name, key, info in (*_keys(Config, ""), *_keys(Toolchain, "toolchains.NAME")):
        found.setdefault(name, []).append((f"`{key}`", _accepts(info.annotation), _default(info), _meaning(info)))
    return found


def blocks() -> dict[str, str]:
    """Return the generated block of the page."""
    parts: list[str] = []
    for name, rows in tables().items():
        lines = [HEAD, ("---",) * len(HEAD), *rows]
        parts += [f"### {TITLES.get(name, f'`[{name}]`')}", ""]
        parts += [f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines] + [""]
    return {"keys": "\n".join(parts).rstrip()}


def _keys(model: type[BaseModel], above: str) -> Iterator[tuple[str, str, FieldInfo]]:
    inner: list[tuple[str, type[BaseModel]]] = []
    for key, info in model.model_fields.items():
        within = _table_in(info.annotation)
        if within is None:
            yield above, key, info
        elif within not in _AGAIN and not within.__name__.endswith("Budgets"):
            inner.append((f"{above}.{key}" if above else key, within))
    for name, within in inner:
        yield from _keys(within, name)


def _table_in(annotation: Any) -> type[BaseModel] | None:
    """Return the table that a key holds: one, a list of them, or one by each name."""
    for part in (annotation, *get_args(annotation)):
        if isinstance(part, type) and issubclass(part, BaseModel):
            return part
        inner = _table_in(part) if part is not annotation and get_args(part) else None
        if inner is not None:
            return inner
    return None


def _accepts(annotation: Any) -> str:
    origin, parts = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return ", ".join(f"`{one.value}`" for one in annotation)
    if origin is Annotated:
        return _accepts(parts[0])
    if origin is tuple:
        return "a list of commands" if _accepts(parts[0]) == "a list" else "a list"
    if origin is Mapping:
        return "a table of texts"
    if parts:
        return " or ".join(dict.fromkeys(_accepts(part) for part in parts if part is not type(None)))
    return _WORDS.get(cast("type", annotation), "a date")


def _default(info: FieldInfo) -> str:
    value: object = info.default
    if info.is_required():
        return "has to be there"
    if value is None or value == ():
        return "none"
    if isinstance(value, Enum):
        return f"`{value.value}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return ", ".join(f"`{one}`" for one in cast("tuple[object, ...]", value))
    return f"`{value}`" if value != {} else "none"


def _meaning(info: FieldInfo) -> str:
    inner = (getattr(part, "description", None) for one in get_args(info.annotation) for part in get_args(one))
    return info.description or next((said for said in inner if said), "")


if __name__ == "__main__":
    PAGE.write_text(refresh(PAGE.read_text(encoding="utf-8"), blocks()), encoding="utf-8")
