"""The programs that run inside the box: files of ours, copied out of the package, that run alone."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

_COMMON: Final = ("recording.py", "watched.py")
_MAIN: Final = "from pipeline.languages.{}.runner import main\n\nmain()\n"


def lay_out(program: Path, language: str, *files: str) -> None:
    """Make the folder `program`, which python runs, from files of a language and what all of them use.

    They lie as in the package, so that they find each other by the same names.
    """
    here = Path(__file__).parent
    package = program / "pipeline" / "languages"
    (package / language).mkdir(parents=True)
    for name in (*_COMMON, *(f"{language}/{name}" for name in files)):
        shutil.copyfile(here / name, package / name)
    (program / "__main__.py").write_text(_MAIN.format(language), encoding="utf-8")
