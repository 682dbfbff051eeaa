"""Which programs redfirst starts on the host, seen by the kernel: everything it executes outside of its boxes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from kit import REDFIRST

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_CALLS: Final = "trace=execve,execveat,clone,clone3,fork,vfork"
_CHILD: Final = re.compile(r"(\d+) +(?:<\.\.\. )?(?:clone3?|v?fork)\b.*= (\d+)")
_EXECUTED: Final = re.compile(r'(\d+) +execve(?:at)?\((?:[^"]*, )?"((?:[^"\\]|\\.)*)"')
_BOX: Final = "bwrap"
_NO_PROGRAM: Final = Path(os.devnull)
"""What GitPython is told to ask for its version when it is loaded (pipeline/repo/gitpython.py): the kernel refuses."""


@dataclass(frozen=True)
class Traced:
    """A command that ended. `started` are the paths that were executed outside of boxes, failed tries included."""

    exit_code: int
    output: str
    started: tuple[Path, ...]
    boxes: int


def traced(*argv: str, cwd: Path, env: Mapping[str, str], log: Path) -> Traced:
    """Run `redfirst` to its end and return what it executed."""
    program = shutil.which("strace")
    if program is None:
        pytest.skip("strace is not installed")
    words = [program, "-f", "--seccomp-bpf", "-qq", "-s", "4096", "-e", _CALLS, "-e", "signal=none", "-o", str(log)]
    done = subprocess.run(
        [*words, str(REDFIRST), *argv],
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    lines = log.read_text(errors="replace").splitlines()
    assert lines, f"strace did not work: {done.stderr}"
    outside = _outside(lines)
    executed = [
        (int(found[1]), path)
        for line in lines
        if (found := _EXECUTED.match(line)) and (path := Path(found[2])) != _NO_PROGRAM
    ]
    return Traced(
        done.returncode,
        done.stdout + done.stderr,
        tuple(path for number, path in executed if number in outside),
        sum(1 for number, path in executed if number in outside and path.name == _BOX),
    )


def _outside(lines: list[str]) -> frozenset[int]:
    """Return the processes outside of every box: children of the first one, but for what bubblewrap has started.

    Inside of a box clone returns numbers of another namespace: they name no child of a process that is outside.
    """
    boxes = {int(found[1]) for line in lines if (found := _EXECUTED.match(line)) and Path(found[2]).name == _BOX}
    children: dict[int, set[int]] = {}
    for line in lines:
        if found := _CHILD.match(line):
            children.setdefault(int(found[1]), set()).add(int(found[2]))
    return frozenset(_below(int(lines[0].split()[0]), children, boxes))


def _below(number: int, children: Mapping[int, set[int]], boxes: set[int]) -> Iterator[int]:
    waiting, seen = [number], set[int]()
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen.add(one)
            yield one
            waiting += () if one in boxes else children.get(one, ())
