#!/usr/bin/env python3
"""Play docs/tutorial.md: type its commands into a real shell on 80 columns, hold its transcripts against the screen.

It says what is printed otherwise and ends with 1; `--write` mends the page. Lines that the page leaves out are `...`
there; lines that it shows one below the other stand so on the screen. What is asked with `[y/N]` is answered with y.
Where the page has `^C`, that is typed once @make is at work. The agents are scripted (`tutorial/agent.py`); the rest
is the real program. What is this machine's own has stand-ins.
"""

from __future__ import annotations

import argparse
import difflib
import fcntl
import itertools
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from terminal import Screen  # noqa: E402

from pipeline.characters import visible  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE: Final = ROOT / "docs" / "tutorial.md"
COLUMNS, ROWS = 80, 24
HOME: Final = "/home/adaline"
"""As long as the name of a temporary folder, so that lines are broken where they would be."""
LEFT_OUT: Final = "..."
INTERRUPT: Final = "^C"
_BLOCK: Final = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)
_PROMPT: Final = re.compile(r"\x1b\]0;(\d+)\x07\$ $")
_MORE: Final = re.compile(r"\n> $")
_ASKED: Final = re.compile(rf"\[y/N\]:? |{_PROMPT.pattern}")
_AT_WORK: Final = re.compile(rf"0:0[1-9] @make|{_PROMPT.pattern}")
_STYLE: Final = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Typed:
    """A command of the page, of one line or several, and what the page shows below it."""

    command: tuple[str, ...]
    shown: tuple[str, ...]

    @property
    def lines(self) -> list[str]:
        """Return what the page has."""
        first, *more = self.command
        return [f"$ {first}", *(f"> {line}".rstrip() for line in more), *self.shown]

    def in_place_of_shown(self, screen: Sequence[str]) -> Typed:
        """Return it with what is on the screen where the page shows something else; what it leaves out stays so."""
        new: list[str] = []
        at, left_out = 0, True
        for line in self.shown:
            if line in {LEFT_OUT, INTERRUPT}:
                new += [line] if line == INTERRUPT else []
                left_out = True
                continue
            rest = screen[at:]
            alike = [line] if line in rest else difflib.get_close_matches(line, rest, 1, 0.5)
            if not alike:
                continue
            there = at + rest.index(alike[0])
            new += [LEFT_OUT] if left_out and there > at else screen[at:there]
            new.append(alike[0])
            at, left_out = there + 1, False
        new += ([LEFT_OUT] if left_out else screen[at:]) if at < len(screen) else []
        return Typed(self.command, tuple(new))


def typed_in(block: str) -> list[Typed]:
    """Return the commands of a block."""
    found: list[Typed] = []
    for one in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        first, *lines = one.removesuffix("\n").split("\n")
        more = sum(1 for _ in itertools.takewhile(lambda line: line.startswith(">"), lines))
        command = (first, *(line[2:] for line in lines[:more]))
        found.append(Typed(command, tuple(lines[more:])))
    return found


@dataclass
class Shell:
    """A shell on a terminal of its own, and all that it wrote."""

    pid: int
    handle: int
    text: str = ""

    @classmethod
    def start(cls, home: Path, env: dict[str, str]) -> Shell:
        """Start bash; its prompt says the exit code of the line before as the title of the window."""
        pid, handle = pty.fork()
        if pid == 0:
            os.chdir(home)
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], env)  # noqa: S606  (there is none)
        fcntl.ioctl(handle, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        shell = cls(pid, handle)
        shell.wait_for(_PROMPT)
        return shell

    def end(self) -> None:
        """Leave the shell and wait until it is gone."""
        os.write(self.handle, b"\x04")
        os.waitpid(self.pid, 0)
        os.close(self.handle)

    def wait_for(self, there: re.Pattern[str], within_s: float = 300) -> re.Match[str]:
        """Read until a pattern is in what was written since the last call; return the match."""
        first = len(self.text)
        while (found := there.search(self.text, first)) is None:
            if not select.select([self.handle], [], [], within_s)[0]:
                raise SystemExit(f"nothing came for {within_s} s in place of {there.pattern}:\n{self.text[first:]}")
            self.text += os.read(self.handle, 65536).decode(errors="replace")
        return found

    def type(self, one: Typed) -> str:
        """Type a command and answer what it asks; return all that was to be seen below it."""
        first = len(self.text)
        *begun, last = one.command
        for line in begun:
            os.write(self.handle, f"{line}\r".encode())
            self.wait_for(_MORE)
        os.write(self.handle, f"{last}\r".encode())
        interrupted = INTERRUPT in one.shown
        found = self.wait_for(_AT_WORK if interrupted else _ASKED)
        if found[1] is None:
            os.write(self.handle, b"\x03" if interrupted else b"y\r")
            self.wait_for(_PROMPT)
        return self.text[first:]


@dataclass
class StandIns:
    """Plain words for what is this machine's own: the same one for the same thing, all through the page."""

    paths: dict[str, str]
    known: dict[str, str] = field(default_factory=dict[str, str])

    def pattern(self) -> re.Pattern[str]:
        """Return what is looked for."""
        paths = "|".join(re.escape(path) for path in sorted(self.paths, key=len, reverse=True))
        return re.compile(
            rf"(?P<mark>\x1b\]0;\d+\x07)|(?P<path>{paths})|(?:\b|(?<=\dm))(?P<hash>[0-9a-f]{{7,64}})\b"
            r"|(?<=/slugs-)(?P<key>[0-9a-f]{6})\b"
            r"|\b(?P<day>20\d\d-\d\d-\d\d)(?P<hour>[ T]\d\d:\d\d(?P<second>:\d\d)?)?|\b(?P<room>\d+)(?= MiB)"
            r"|\b(?P<age>\d+[smhd])(?= ago\b)|(?<!at most )\b(?P<time>\d+(?:\.\d+)?)(?= ?m?s\b)"
        )

    def of(self, found: re.Match[str]) -> str:
        """Return the stand-in of one match."""
        if found["path"]:
            return self.paths[found["path"]]
        if digest := found["hash"] or found["key"]:
            number = self.known.setdefault(digest[:7], f"{len(self.known) + 1:02d}")
            return (number * len(digest))[: len(digest)]
        if found["day"]:
            hour = f"{found['hour'][0]}09:00" if found["hour"] else ""
            return f"2026-01-05{hour}{':00' if found['second'] else ''}"
        if found["age"]:
            return "1s"
        return "50000" if found["room"] else "1" if found["time"] else ""

    def screen(self, text: str) -> list[str]:
        """Return the lines that are on the screen once all of a text was written; the last one is the prompt."""
        said = _STYLE.sub("", self.pattern().sub(self.of, f"$ {text}"))
        return [visible(line) for line in Screen(COLUMNS).feed(said).lines][:-1]


def lay_out(home: Path) -> dict[str, str]:
    """Make a home with a checkout of redfirst that is set up; return the environment of somebody who has just that."""
    checkout = home / "redfirst"
    (checkout / ".venv").mkdir(parents=True)
    for path in ROOT.iterdir():
        if path.name not in {".git", ".venv"}:
            (checkout / path.name).symlink_to(path)
    (checkout / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    (checkout / ".venv" / ".installed").touch()
    (home / "tmp").mkdir()
    (home / ".inputrc").write_text("set enable-bracketed-paste off\n")
    (home / ".gitconfig").write_text("[user]\nname = Ada\nemail = ada@example.org\n")
    (home / "bin").mkdir()
    (home / "bin" / "python3").symlink_to(getattr(sys, "_base_executable", sys.executable))
    paths = [one for one in os.environ["PATH"].split(os.pathsep) if Path(one) != Path(sys.executable).parent]
    ours = (
        "XDG_",
        "GIT_",
        "REDFIRST_",
        "PYTHON",
        "CI",
        "VIRTUAL_ENV",
        "COLUMNS",
        "LINES",
        "NO_COLOR",
        "PROMPT",
        "LC_",
        "ANTHROPIC_",
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return kept | {
        "PATH": os.pathsep.join([str(home / "bin"), *paths]),
        "HOME": str(home),
        "USER": "adaline",
        "LOGNAME": "adaline",
        "TMPDIR": str(home / "tmp"),
        "LANG": "C.UTF-8",
        "TERM": "xterm",
        "PAGER": "cat",
        "TABSIZE": "0",
        "INPUTRC": str(home / ".inputrc"),
        "HISTFILE": "/dev/null",
        "PS1": "\\[\\e]0;$?\\a\\]$ ",
        "PS2": "> ",
        "PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR", str(Path.home() / ".cache" / "pip")),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def played(page: str) -> str:
    """Return the page with its transcripts as they are printed now."""
    with tempfile.TemporaryDirectory(prefix="", dir="/tmp") as folder:  # as long as HOME
        home = Path(folder)
        env = lay_out(home)
        python = subprocess.run(
            ["python3", "-c", "import os, sys; print(os.path.realpath(sys.executable))"],
            env=env,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        stand_ins = StandIns({str(home): HOME, str(ROOT): f"{HOME}/redfirst", python: "/usr/bin/python3"})
        shell = Shell.start(home, env)

        def again(block: re.Match[str]) -> str:
            lines: list[str] = []
            for one in typed_in(block[0]):
                screen = stand_ins.screen(shell.type(one))[len(one.command) :]
                sys.stderr.write("".join(f"{line}\n" for line in Typed(one.command, tuple(screen)).lines))
                lines += one.in_place_of_shown(screen).lines
            return "".join(f"{line}\n" for line in lines)

        new = _BLOCK.sub(again, page)
        shell.end()
    return new


def main() -> int:
    """Play, and say what is printed otherwise than the page has it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--write", action="store_true", help="write what is printed into the page")
    write: bool = parser.parse_args().write
    page = PAGE.read_text(encoding="utf-8")
    new = played(page)
    if write:
        PAGE.write_text(new, encoding="utf-8")
        return 0
    sys.stdout.writelines(difflib.unified_diff(page.splitlines(True), new.splitlines(True), "the page", "printed"))
    return int(page != new)


if __name__ == "__main__":
    sys.exit(main())
