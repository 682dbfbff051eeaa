"""Reads `[fleet]` of the user's file alone: every list of orders asks for it, and no other layer may set it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from pipeline.config.sources import parse_user
from pipeline.config.tables import Fleet, Table
from pipeline.config.user_folders import config_folder

if TYPE_CHECKING:
    from collections.abc import Mapping


class _Part(Table):
    fleet: Fleet = Fleet()


def fleet_of(environ: Mapping[str, str]) -> Fleet:
    """Return the table of the user's file.

    Raises:
        UserError: the file cannot be read, or a value is not accepted.
    """
    user = parse_user(config_folder(environ) / "config.toml")
    if user is None or "fleet" not in user.table:
        return Fleet()
    try:
        return _Part.model_validate({"fleet": user.table["fleet"]}, strict=True).fleet
    except ValidationError as error:
        from pipeline.config.problems import refusal  # noqa: PLC0415  (it knows every key, which nobody else needs)

        raise refusal(error, user.origin) from error
