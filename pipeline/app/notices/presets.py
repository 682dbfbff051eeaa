"""Says what a `[notify.NAME]` holds that `redfirst init --notify` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.outcomes import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

EMAIL: Final = "email"
_FOR_PEOPLE: Final = ["run.parked", "run.finished", "landing.refused"]
_PRESETS: Final[Mapping[str, Mapping[str, object]]] = {
    "desktop": {"command": ["notify-send", "--app-name=redfirst", "--", "{project}: {subject}", "{text}"]},
    "slack": {"url_env": "SLACK_WEBHOOK_URL", "form": "slack"},
}
NAMES: Final = (*_PRESETS, EMAIL)


def preset(name: str, argv: Sequence[str]) -> dict[str, object]:
    """Return the keys of a preset; *argv* is the command that sends an e-mail.

    Raises:
        UserError: there is no such preset, or it lacks the command.
    """
    if name not in NAMES:
        raise UserError(f"--notify {name} is no preset. Accepted: {', '.join(NAMES)}.", Reason.USAGE)
    if (name == EMAIL) != bool(argv):
        raise UserError(
            "--notify email needs your command as --argv. The other presets take none.",
            Reason.USAGE,
            actions=("redfirst init --notify email --argv \"mail -s '{subject}: {text}' ada@example.org\"",),
        )
    return {"types": _FOR_PEOPLE, **({"command": list(argv)} if argv else _PRESETS[name])}
