"""Starts pytest in the box as its command would: `start.py -m pytest ...` or `start.py /path/to/pytest ...`.

It runs alone, beside the plugin. pytest with its own plugins and the recording one are imported, and the request is
read, before the project's folder is among those that modules come from: a `pytest.py` or `json.py` of the project can
be neither of them. They are read as they were installed, compiled, and not compiled anew for this process.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import runpy
import sys


def main() -> None:
    """Run pytest as its command would."""
    _import_installed("redfirst_evidence")
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


def _import_installed(name: str) -> None:
    """Import a module and what it imports, using bytecode installed beside it if there is any.

    The project's own is kept in `PYTHONPYCACHEPREFIX`, where nothing of an earlier measurement is found.
    """
    prefix, writes = sys.pycache_prefix, sys.dont_write_bytecode
    sys.pycache_prefix, sys.dont_write_bytecode = None, True
    if not _is_compiled("pytest"):
        sys.pycache_prefix, sys.dont_write_bytecode = prefix, writes
    try:
        importlib.import_module(name)
        for plugin in getattr(sys.modules["_pytest.config"], "default_plugins", ()):
            importlib.import_module(f"_pytest.{plugin}")
    finally:
        sys.pycache_prefix, sys.dont_write_bytecode = prefix, writes


def _is_compiled(name: str) -> bool:
    found = importlib.util.find_spec(name)
    return found is not None and found.cached is not None and os.path.exists(found.cached)  # noqa: PTH110


if __name__ == "__main__":
    main()
