"""Prints facts about a Python environment; run by its interpreter on the host as `python -I -S environment_facts.py`.

-S leaves `site` out: no `.pth` line, no sitecustomize and no plugin runs. What they would have done to the import path
is read here, as text. This file imports the standard library alone and speaks Python 3.8.
"""

from __future__ import annotations

import ast
import importlib.metadata
import json
import os
import re
import site
import sys
from pathlib import Path
from urllib.parse import unquote

_FINDER = re.compile(r"import\s+(__editable__\w+)")


def main() -> None:
    """Print the facts as one JSON object."""
    # nix starts an interpreter with these variables; what obeys them there is a sitecustomize
    executable = os.environ.get("NIX_PYTHONEXECUTABLE", sys.executable)
    prefix, shows_base = _environment_of(Path(executable))
    prefix = os.environ.get("NIX_PYTHONPREFIX", prefix)
    folders = _site_packages(prefix)
    if shows_base:
        folders += _site_packages(sys.base_prefix)
    folders += [entry for entry in os.environ.get("NIX_PYTHONPATH", "").split(":") if entry]
    path = [entry for entry in sys.path if entry]
    mapped: list[str] = []
    for folder in dict.fromkeys(folders):
        if Path(folder).is_dir():
            path.append(folder)
            _follow(Path(folder), path, mapped)
    path = list(dict.fromkeys(path))
    facts = {
        "executable": executable,
        "prefix": prefix,
        "base_prefix": sys.base_prefix,
        "python": sys.version.split()[0],
        "path": path,
        "mapped": mapped,
    }
    sys.stdout.write(json.dumps({**facts, **_installed(path)}))


def _environment_of(executable: Path) -> tuple[str, bool]:
    """Return an interpreter's environment folder, and whether it includes the base installation's packages."""
    for place in (executable.parent.parent, executable.parent):
        text = _text(place / "pyvenv.cfg")
        if text:
            lines = [line.partition("=") for line in text.splitlines()]
            said = {key.strip().lower(): value.strip().lower() for key, _, value in lines}
            return str(place), said.get("include-system-site-packages", "true") == "true"
    return sys.base_prefix, False


def _site_packages(prefix: str) -> list[str]:
    sys.prefix = sys.exec_prefix = prefix  # Debian's `site` compares it with the base
    return site.getsitepackages([prefix])


def _follow(folder: Path, path: list[str], mapped: list[str]) -> None:
    """Add the paths in a folder's `.pth` files, and the folders that editable-install finders map to."""
    for file in sorted(folder.glob("*.pth")):
        for line in _text(file).splitlines():
            if line.startswith(("import ", "import\t")):
                finder = _FINDER.match(line)
                mapped += _mapping(folder / f"{finder[1]}.py") if finder else []
            elif line.strip() and not line.startswith("#"):
                place = os.path.normpath(folder / line.strip())
                path += [place] if Path(place).exists() else []


def _mapping(file: Path) -> list[str]:
    """Return the values of MAPPING in the finder module that setuptools writes for an editable install."""
    try:
        for node in ast.parse(_text(file)).body:
            if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == "MAPPING" for target in targets):
                return [str(value) for value in ast.literal_eval(node.value).values()]
    except (ValueError, SyntaxError, AttributeError, TypeError, RecursionError, MemoryError):
        pass
    return []


def _installed(path: list[str]) -> dict[str, object]:
    """Return the version of pytest, the names of its plugins, and the folders of editable installs."""
    version = ""
    plugins: set[str] = set()
    editable: list[str] = []
    for distribution in importlib.metadata.distributions(path=path):
        try:
            name, entries = distribution.metadata["Name"], distribution.entry_points
            url = json.loads(distribution.read_text("direct_url.json") or "{}")
            is_editable = bool(url.get("dir_info", {}).get("editable"))
            place = str(url.get("url", "")) if is_editable else ""
            version = version or (distribution.version if name == "pytest" else "")
        except Exception:  # noqa: BLE001, S112  (whatever is wrong with a record, the others count)
            continue
        plugins.update(entry.name for entry in entries if entry.group == "pytest11")
        if place.startswith("file://"):
            editable.append(unquote(place[len("file://") :]))
    return {"pytest": version, "plugins": sorted(plugins), "editable": editable}


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


if __name__ == "__main__":
    main()
