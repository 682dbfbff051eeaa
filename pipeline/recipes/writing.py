"""Writes a recipe as the text of a file, which reads as the same recipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import yaml

from pipeline.policy.characters import visible
from pipeline.yaml_text import core, written

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.recipes.model import Recipe

_WIDTH: Final = 120
_INLINE: Final = 60
"""Characters of a list that stands in one line."""


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as they read, and short lists in one line."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  (PyYAML's)
        """Return that everything is written out: a recipe has no anchors."""
        return True


def _text(_dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    is_plain = visible(text, keep="\n") == text and core(text, "") == text
    style = '"' if not is_plain else "|" if "\n" in text else None
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, style=style)


def _list(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.SequenceNode:
    is_short = all(isinstance(one, str) for one in items) and sum(len(one) + 2 for one in items) <= _INLINE
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=is_short)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(list, _list)


def recipe_text(recipe: Recipe) -> str:
    """Return the file of a whole recipe, without what is said by leaving it out."""
    return document_text(recipe.model_dump(mode="json", by_alias=True, exclude_defaults=True))


def document_text(document: Mapping[str, object]) -> str:
    """Return the file that says *document*, its keys in their order."""
    return written(document, _Dumper, _WIDTH)
