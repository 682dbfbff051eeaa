"""Starts pytest in the box as its command would: `start.py -m pytest ...` or `start.py /path/to/pytest ...`.

It runs alone, beside the plugin. pytest and the plugin are imported, and the request is read, before the project's
folder is among those that modules come from: a `pytest.py` or `json.py` of the project can be neither of them.
"""

from __future__ import annotations

import importlib
import os
import runpy
import sys


def main() -> None:
    """Become pytest."""
    importlib.import_module("redfirst_evidence")
    program, *arguments = sys.argv[1:]
    if program == "-m":
        # as `python -m` has it: the folder that it is started in
        sys.path[0] = os.getcwd()  # noqa: PTH109  (a text)
        sys.argv = ["pytest", *arguments[1:]]
        runpy.run_module("pytest", run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.realpath(program))  # noqa: PTH120
        sys.argv = [program, *arguments]
        runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main()
