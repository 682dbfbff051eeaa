"""Runs our program for a language in a box: the view, and a private folder with the program."""

from __future__ import annotations

import json
import secrets
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from pipeline.languages.runners.sessions import Line, Session, read_session
from pipeline.process import Command, Completed, Mount
from pipeline.programs import locate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import TypeAdapter

    from pipeline.languages.protocol import Measurement

_LANGUAGES: Final = Path(__file__).parents[1]
_COMMON: Final = ("runners/recording.py", "runners/exec_guard.py", "runners/processes.py")
_MAIN: Final = "from pipeline.languages.{}.runner import main\n\nmain()\n"
_ANSWER: Final = 512_000_000
_GRACE_S: Final = 20.0
_Line = TypeVar("_Line", bound=Line)


@dataclass(frozen=True)
class BoxedRunner:
    """A measurement's request, and the folder of our program."""

    asked: Measurement
    program: Path

    async def ask(
        self,
        request: Mapping[str, object],
        limit_s: float,
        adapter: TypeAdapter[_Line],
        variables: Mapping[str, str],
        *mounts: Mount,
        packages: Sequence[Mount] = (),
    ) -> tuple[Session, Completed]:
        """Run our program with a request, and return the records that it wrote.

        Args:
            request: What it is asked; the nonce and the limit are added.
            limit_s: How long it may take by its own clock.
            adapter: Reads one of its records.
            variables: Its environment.
            mounts: What it is shown beside the view, the language and itself.
            packages: What is shown inside the view, and over which the language's own mounts may lie.
        """
        nonce = secrets.token_hex(16)
        python = locate(sys.executable)
        asked = self.asked
        completed = await asked.box.run(
            Command(
                argv=python.argv("-I", "-S", str(self.program)),
                cwd=asked.view.workspace,
                mounts=(
                    asked.view.mount,
                    *packages,
                    *asked.env.mounts,
                    *(mount for mount in python.mounts if mount not in asked.env.mounts),
                    Mount(self.program, self.program),
                    *mounts,
                ),
                env=dict(variables),
                request=json.dumps({**request, "nonce": nonce, "timeout_s": limit_s}).encode(),
                timeout_s=limit_s + _GRACE_S,
                answer_limit=_ANSWER,
            )
        )
        return read_session(completed.answer, nonce, adapter), completed


def lay_out(place: Path, language: str, *files: str) -> Path:
    """Create the folder of our program, from files of a language and common ones.

    They lie as in the package, so that they find each other by the same names.
    """
    program = place / "program"
    package = program / "pipeline" / "languages"
    for name in (*_COMMON, *(f"{language}/{name}" for name in files)):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_LANGUAGES / name, package / name)
    (program / "__main__.py").write_text(_MAIN.format(language), encoding="utf-8")
    return program
