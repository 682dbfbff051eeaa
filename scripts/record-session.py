#!/usr/bin/env python3
"""Record a session at a terminal: from the installation to commits on main, typed into a real shell on 80 columns.

It writes `session.cast` (asciicast v2, `asciinema play docs/session.cast`) and `session.md` (the same to read). The
agents are scripted (`session/agent.py`); the rest is the real program. What is this machine's own has stand-ins.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from session.steps import STATIONS, Step  # noqa: E402
from terminal import Screen  # noqa: E402

from pipeline.policy.characters import visible  # noqa: E402

COLUMNS, ROWS = 80, 24
HOME: Final = "/home/adaline"
"""As long as the name of a temporary folder, so that lines are broken where they would be."""
ABOUT: Final = """# A session at a terminal

Recorded by `scripts/record-session.py` on 80 columns; `asciinema play docs/session.cast` plays the same. The agents are
**scripted**: [`agent.py`](../scripts/session/agent.py) plays prepared answers, no model is asked; the project is
[`slugs`](../scripts/session/slugs/slugs.py). All else is the real program. Paths, hashes, dates and durations have
stand-ins. Of the status line in the last row, only what stayed is to be seen."""
_PROMPT: Final = re.compile(r"\x1b\]0;(\d+)\x07\$ $")
_MORE: Final = re.compile(r"\n> $")
_STYLE: Final = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Shell:
    """A shell on a terminal of its own, and all that it wrote with its times."""

    pid: int
    handle: int
    began: float = field(default_factory=time.monotonic)
    pieces: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])

    @classmethod
    def start(cls, home: Path, env: dict[str, str]) -> Shell:
        """Start bash; its prompt says the exit code of the line before as the title of the window."""
        pid, handle = pty.fork()
        if pid == 0:
            os.chdir(home)
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], env)  # noqa: S606  (there is none)
        fcntl.ioctl(handle, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        return cls(pid, handle)

    def end(self) -> None:
        """Leave the shell and wait until it is gone."""
        os.write(self.handle, b"\x04")
        os.waitpid(self.pid, 0)
        os.close(self.handle)

    def wait_for(self, there: re.Pattern[str], within_s: float = 120) -> re.Match[str]:
        """Read until a pattern is in what was written since the last call; return the match."""
        first, text = len(self.pieces), ""
        while (found := there.search(text)) is None:
            if not select.select([self.handle], [], [], within_s)[0]:
                raise SystemExit(f"nothing came for {within_s} s while waiting for {there.pattern}:\n{text}")
            data = os.read(self.handle, 65536).decode(errors="replace")
            self.pieces.append((time.monotonic() - self.began, data))
            text = "".join(piece for _, piece in self.pieces[first:])
        return found

    def type(self, step: Step) -> slice:
        """Type a line and answer what it asks; return the pieces that hold all that was to be seen."""
        first = len(self.pieces)
        *begun, last = step.line.split("\n")
        for line in begun:
            os.write(self.handle, f"{line}\r".encode())
            self.wait_for(_MORE)
        os.write(self.handle, f"{last}\r".encode())
        if step.then is not None:
            asked = self.wait_for(re.compile(f"{step.then[0]}|{_PROMPT.pattern}"))
            os.write(self.handle, step.then[1].encode() if asked[1] is None else b"\r")
        code = int(self.wait_for(_PROMPT)[1])
        text = "".join(piece for _, piece in self.pieces[first:])
        if code != step.code or step.says not in text:
            raise SystemExit(f"{step.line}: exit code {code} for {step.code}, {step.says!r} is expected:\n{text}")
        return slice(first, len(self.pieces))


@dataclass
class StandIns:
    """Plain words for what is this machine's own: the same one for the same thing, all through the session."""

    paths: dict[str, str]
    known: dict[str, str] = field(default_factory=dict[str, str])

    def pattern(self) -> re.Pattern[str]:
        """Return what is looked for."""
        paths = "|".join(re.escape(path) for path in sorted(self.paths, key=len, reverse=True))
        return re.compile(
            rf"(?P<mark>\x1b\]0;\d+\x07)|(?P<path>{paths})|(?:\b|(?<=\dm))(?P<hash>[0-9a-f]{{7,64}})\b"
            r"|(?<=/slugs-)(?P<key>[0-9a-f]{6})\b"
            r"|\b(?P<day>20\d\d-\d\d-\d\d)(?P<hour>[ T]\d\d:\d\d:\d\d)?|\b(?P<room>\d+)(?= MiB)"
            r"|(?<!at most )\b(?P<time>\d+(?:\.\d+)?)(?= ?m?s\b)"
        )

    def of(self, found: re.Match[str]) -> str:
        """Return the stand-in of one match."""
        if found["path"]:
            return self.paths[found["path"]]
        if digest := found["hash"] or found["key"]:
            number = self.known.setdefault(digest[:7], f"{len(self.known) + 1:02d}")
            return (number * len(digest))[: len(digest)]
        if found["day"]:
            return "2026-01-05" + (f"{found['hour'][0]}09:00:00" if found["hour"] else "")
        return "50000" if found["room"] else "1" if found["time"] else ""

    def replaced(self, pieces: list[tuple[float, str]]) -> list[tuple[float, str]]:
        """Return what was written, each piece at its time; what is cut in two by pieces is in the first of them."""
        whole = "".join(text for _, text in pieces)
        found = list(self.pattern().finditer(whole))
        new: list[tuple[float, str]] = []
        done = end = 0
        for at, text in pieces:
            end += len(text)
            said = ""
            while found and found[0].start() < end:
                said += whole[done : found[0].start()] + self.of(found[0])
                done = found.pop(0).end()
            new.append((at, said + whole[done:end]))
            done = max(done, end)
        return new


def lay_out(home: Path) -> dict[str, str]:
    """Make a home with a small project, the scripted agent and this checkout; return its environment."""
    shutil.copytree(ROOT / "scripts" / "session" / "slugs", home / "slugs")
    shutil.copy(ROOT / "scripts" / "session" / "agent.py", home)
    (home / "redfirst").symlink_to(ROOT)
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if uv is None:
        raise SystemExit("uv is needed: it is in the group dev of pyproject.toml")
    cache = subprocess.run([uv, "cache", "dir"], capture_output=True, text=True, check=True).stdout.strip()
    (home / "bin").mkdir()
    (home / "bin" / "uv").symlink_to(uv)
    paths = [one for one in os.environ["PATH"].split(os.pathsep) if Path(one) != Path(sys.executable).parent]
    ours = (
        "XDG_",
        "GIT_",
        "REDFIRST_",
        "PYTHON",
        "UV_",
        "CI",
        "VIRTUAL_ENV",
        "COLUMNS",
        "LINES",
        "NO_COLOR",
        "PROMPT",
        "LC_",
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith(ours)} | {
        "PATH": os.pathsep.join([str(home / ".local" / "bin"), str(home / "bin"), *paths]),
        "HOME": str(home),
        "USER": "adaline",
        "LOGNAME": "adaline",
        "LANG": "C.UTF-8",
        "TERM": "xterm",
        "PAGER": "cat",
        "TABSIZE": "0",
        "INPUTRC": str(home / ".inputrc"),
        "HISTFILE": "/dev/null",
        "PS1": "\\[\\e]0;$?\\a\\]$ ",
        "PS2": "> ",
        "UV_CACHE_DIR": cache,
        "UV_PYTHON": getattr(sys, "_base_executable", sys.executable),
        "UV_LINK_MODE": "copy",
        "UV_NO_PROGRESS": "1",
    }
    (home / ".inputrc").write_text("set enable-bracketed-paste off\n")
    (home / ".gitconfig").write_text("[user]\nname = Ada\nemail = ada@example.org\n[init]\ndefaultBranch = main\n")
    (home / "slugs" / ".gitignore").write_text(".venv/\n__pycache__/\n")
    for line in (
        "git init -q",
        "git add -A",
        "git commit -qm slugs",
        "uv venv -q",
        "uv pip install -q --python .venv pytest",
    ):
        subprocess.run(line.split(), cwd=home / "slugs", env=env, check=True)
    return env


def page(texts: dict[str, list[str]]) -> str:
    """Return the session as a page: below each station what was typed, and what was to be seen in the end."""
    lines = [ABOUT]
    for number, (station, blocks) in enumerate(texts.items(), 1):
        lines += [f"\n## {number}. {station}\n", "```console"]
        for text in blocks:
            seen = Screen(COLUMNS).feed(_STYLE.sub("", text)).lines
            lines += [visible(line) for line in seen[:-1]]
        lines.append("```")
    return "\n".join(lines) + "\n"


def cast(pieces: list[tuple[float, str]]) -> str:
    """Return the session as asciicast v2."""
    header = {"version": 2, "width": COLUMNS, "height": ROWS, "title": "redfirst, from installation to commits"}
    events = [[round(at, 2), "o", text] for at, text in pieces if text]
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in [header, *events])


def main() -> None:
    """Record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--to", type=Path, default=ROOT / "docs", help="where both files are written (docs)")
    to: Path = parser.parse_args().to
    with tempfile.TemporaryDirectory(prefix="", dir="/tmp") as folder:  # as long as HOME
        home = Path(folder)
        env = lay_out(home)
        shell = Shell.start(home, env)
        shell.wait_for(_PROMPT)
        seen = {station: [shell.type(step) for step in steps] for station, steps in STATIONS.items()}
        shell.end()
        python = subprocess.run(
            ["python3", "-c", "import os, sys; print(os.path.realpath(sys.executable))"],
            env=env,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        paths = {str(home): HOME, str(ROOT): f"{HOME}/redfirst", python: "/usr/bin/python3"}
        pieces = StandIns(paths).replaced(shell.pieces)
    to.mkdir(parents=True, exist_ok=True)
    (to / "session.cast").write_text(cast(pieces), encoding="utf-8")
    texts = {
        station: ["$ " + "".join(text for _, text in pieces[one]) for one in ones] for station, ones in seen.items()
    }
    (to / "session.md").write_text(page(texts), encoding="utf-8")


if __name__ == "__main__":
    main()
