"""Loads the role and template files that come with the program."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pipeline.agents.dispatch.prompt import Template, parse_template, template_name
from pipeline.judge.policy.roles import ContractError, Problem, RoleSpec, parse_role
from pipeline.judge.reports.kinds import KINDS
from pipeline.vocabulary import Question, Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from importlib.resources.abc import Traversable

WORKFLOW: Final = "workflow"
"""The page of `commands/` that is no template but the operational rules."""

_SUFFIX: Final = ".md"
_OF_SOME: Final = re.compile(r" <!-- ([a-z]+(?:, [a-z]+)*) -->$")
"""A line that holds only where one of these runs the tests: other projects need not read it."""


def data_folder(name: str) -> Traversable:
    """Return the folder `agents` or `commands`: inside the wheel, or beside `pipeline/` in a checkout.

    The packaged one comes first: site-packages beside a wheel may hold an `agents` of somebody else.
    """
    packaged = files("pipeline") / "_data" / name
    return packaged if packaged.is_dir() else Path(__file__).resolve().parents[3] / name


@cache
def load_roles(runners: frozenset[str] | None = None) -> Mapping[Role, RoleSpec]:
    """Return all roles by name.

    Args:
        runners: What runs the tests of the project; what holds only for others is left out. None leaves nothing out.

    Raises:
        ContractError: a file is missing, superfluous or not understood.
    """
    texts = _texts("agents", [role.value for role in Role], runners)
    return MappingProxyType({role: parse_role(texts[role], role) for role in Role})


@cache
def load_templates(runners: frozenset[str] | None = None) -> Mapping[tuple[str, Question | None], Template]:
    """Return the templates by kind and question; only `judge` has questions.

    Args:
        runners: As for `load_roles`.

    Raises:
        ContractError: a file is missing, superfluous or not understood.
    """
    keys = [(kind.name, question) for kind in KINDS.values() for question in (*kind.by_question,) or (None,)]
    texts = _texts("commands", [WORKFLOW, *(template_name(*key) for key in keys)], runners)
    return MappingProxyType({key: parse_template(texts[template_name(*key)], template_name(*key)) for key in keys})


@cache
def prompts_hash() -> str:
    """Return the sha256 of all role and template files, names included; `run.json` records it."""
    digest = hashlib.sha256()
    for folder in ("agents", "commands"):
        for entry in _entries(folder):
            content = entry.read_bytes()
            digest.update(f"{folder}/{entry.name} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()


def _entries(folder: str) -> list[Traversable]:
    found = (entry for entry in data_folder(folder).iterdir() if entry.name.endswith(_SUFFIX))
    return sorted(found, key=lambda entry: entry.name)


def _texts(folder: str, wanted: Iterable[str], runners: frozenset[str] | None) -> Mapping[str, str]:
    texts = {
        entry.name.removesuffix(_SUFFIX): _for(runners, entry.read_text(encoding="utf-8")) for entry in _entries(folder)
    }
    names = list(wanted)
    for name in names:
        if name not in texts:
            raise ContractError(name, Problem(1, f"the file is missing from {folder}/"))
    for name in texts:
        if name not in names:
            raise ContractError(name, Problem(1, f"{folder}/ has no such file", tuple(names)))
    return texts


def _for(runners: frozenset[str] | None, text: str) -> str:
    """Return the lines of a text that hold where these run the tests, without their marks."""
    lines = text.split("\n")
    marks = [(line, _OF_SOME.search(line)) for line in lines]
    return "\n".join(
        line if mark is None else line[: mark.start()]
        for line, mark in marks
        if mark is None or runners is None or not runners.isdisjoint(mark[1].split(", "))
    )
