"""The private folder of one pytest measurement: our plugin, and caches for each process."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.boxes.box_folder import BoxFolder
from pipeline.languages.python.bytecode import Place, lay_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.languages.protocol import Cache, FoundInputs

PLUGIN: Final = "redfirst_evidence"
"""The name under which the plugin is loaded."""
COMPILED: Final = "pycache"
TEMPORARY: Final = "temproot"
"""The folder that a process has before it starts."""
STORAGE: Final = "hypothesis"
"""The folder of hypothesis, with its database of examples."""
EXAMPLES: Final = f"{STORAGE}/examples"
_HASHED: Final = re.compile(r"[0-9a-f]{16}")
_MOST_EXAMPLES: Final = 10_000
_MOST_BYTES: Final = 16 << 20
_START: Final = "start.py"


@dataclass(frozen=True)
class Scratch:
    """The private folder of one measurement: our program, and for each process a folder that its tests may write to."""

    place: Path
    program: Path

    @classmethod
    def under(cls, place: Path) -> Scratch:
        """Create the folder with our program, which is read-only for tests."""
        program = place / "program"
        program.mkdir()
        # in a folder of their own: what lies beside the plugin in the package would be importable, too
        here = Path(__file__)
        shutil.copytree(here.with_name("plugin"), program / PLUGIN, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copyfile(here.with_name(_START), program / _START)
        return cls(place, program)

    @property
    def start(self) -> Path:
        """Return the path of the program that starts pytest."""
        return self.program / _START

    def folder(
        self, number: int, cache: Cache | None, folders: Sequence[Place], found: FoundInputs | None = None
    ) -> BoxFolder:
        """Return a new folder for a process, with the compiled code that it may use, and the inputs that were found.

        New for each process, for the tests can write there: what one has left behind, the next would load.
        """
        made = BoxFolder.made(self.place, f"process-{number}")
        made.add(TEMPORARY)
        compiled = made.add(COMPILED)
        if cache is not None and not cache.warm:  # what is being filled is not sorted out yet
            lay_out(cache.folder, folders, compiled)
        if found is not None:
            made.fill(found.folder)
        return made


def keep_found(folder: BoxFolder, found: FoundInputs | None) -> None:
    """Keep the counterexamples that hypothesis found, files of bytes below two hashed names, and nothing else.

    Raises:
        BoxError: another folder has come into its place.
    """
    if found is not None and found.keeps:
        kept = found.folder / EXAMPLES
        folder.collect(kept, EXAMPLES, (_HASHED, _HASHED), entries=_MOST_EXAMPLES, size=_MOST_BYTES)
