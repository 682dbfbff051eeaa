"""Our program in the box that compiles the tests of Go modules and runs each in a process of its own.

It is copied out of the package (with what all runners use) and runs alone: the standard library only. It
records facts; `go.records` makes an observation of them. Tested code cannot write records in our name: see `processes`.
Nothing of the project runs while it is compiled: which tests there are is read from the sources.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import Any

from pipeline.testing.languages.runners.processes import READ_AT_ONCE, WHOLE, Ended, Ends, Records, Tail, begin, run

_FRAMES = 20_000
_FOLLOWING = 60
_BEFORE = 40
_WIDTH = 2_000
_KEPT = 4_000_000


class Frames(Tail):
    """The lines of `testing` on begins and ends, with a few lines around each, and the last lines."""

    def __init__(self) -> None:
        super().__init__(READ_AT_ONCE)
        self._rest = b""
        self._lines: list[bytes] = []
        self._before: deque[bytes] = deque(maxlen=_BEFORE)
        self._following = _FOLLOWING
        self._size = 0
        self._frames = 0

    def feed(self, data: bytes) -> None:
        """Add the next bytes of output."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._line(line)
        if len(self._rest) > READ_AT_ONCE:  # a line without an end
            self._line(self._rest)
            self._rest = b""

    def _whole(self) -> bytes:
        return b"\n".join([*self._lines, *self._before, self._rest[:_WIDTH]])

    def _line(self, line: bytes) -> None:
        is_frame = b"=== " in line or b"--- " in line
        if is_frame and self._frames < _FRAMES:
            self._frames += 1
            self._keep(*self._before)
            self._before.clear()
            self._lines.append(line[-_WIDTH:])
            self._following = _FOLLOWING
        elif not is_frame and self._following > 0 and self._size < _KEPT:
            self._following -= 1
            self._keep(line)
        else:
            self._following = 0  # from here on the last lines only, in their order
            self._before.append(line[-_WIDTH:] if is_frame else line[:_WIDTH])

    def _keep(self, *lines: bytes) -> None:
        for line in lines:
            if self._size < _KEPT:
                self._lines.append(line[:_WIDTH])
                self._size += len(self._lines[-1])


_LOG = "# test log\n"
_COVERED = "-test.gocoverdir="
_BLOCKS = 50_000
_DOORS = 500
_ERRORS = 500
_SAID = 64_000
_PRINTED = 128_000
_FIELDS = "ImportPath,Dir,Name,ForTest,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles,Deps,Module,Standard,Error,DepsErrors"


def documents(text: str) -> list[dict[str, Any]]:
    """Return the JSON documents in a text, one after the other; empty if something else is in it."""
    decoder = json.JSONDecoder()
    found: list[dict[str, Any]] = []
    at = 0
    with contextlib.suppress(ValueError):
        while text[at:].strip():
            at += len(text[at:]) - len(text[at:].lstrip())
            value, at = decoder.raw_decode(text, at)
            found.append(value)
    return found


class Builder:
    """Describes the workspace, finds compile errors, and builds the test executables."""

    def __init__(self, request: dict[str, Any], records: Records) -> None:
        self._ask = request
        self._records = records
        self._go: str = request["go"]
        self._root: str = request["root"]
        self._deadline = time.monotonic() + request["timeout_s"]

    def build(self) -> None:
        """Describe and build everything; with `check`, build no executable."""
        modules = self._run("list", "-m", "-json")
        found = [(module["Path"], module.get("Dir", "")) for module in documents(modules.stdout)]
        self._records.write("modules", **{**modules.facts(), "stdout": ""}, modules=found)
        if modules.code:
            return
        patterns: list[str] = self._ask["patterns"] or [
            f"./{os.path.relpath(folder, self._root)}/...".replace("/./", "/")
            for _, folder in found
            if f"{folder}/".startswith(f"{self._root}/")
        ]
        asked = self._run("list", *self._ask["build"], "-e", "-test", "-export", f"-json={_FIELDS}", *patterns)
        packages = documents(asked.stdout)
        listed = described(packages)
        errors = errors_of(packages)
        self._records.write("packages", **{**asked.facts(), "stdout": ""}, packages=listed, errors=errors)
        if self._ask["do"] == "check" or asked.timed_out:
            return
        wanted = self._ask["folders"]
        chosen = [one for one in listed if one["tests"] and (wanted is None or one["dir"] in wanted)]
        self._link(chosen)

    def _link(self, packages: list[dict[str, Any]]) -> None:
        place = Path(self._ask["out"])
        if self._ask["cover"]:  # each of what it depends on only: what else is broken does not matter then
            for package in packages:
                on = ",".join(dict.fromkeys([package["path"], *package["deps"]]))
                self._test([package["path"]], "-cover", "-covermode=atomic", f"-coverpkg={on}")
        elif packages:
            self._test([package["path"] for package in packages])
        for note in sorted(place.glob("*.json")):
            self._records.write("executable", **json.loads(note.read_text(encoding="utf-8")))

    def _test(self, packages: list[str], *more: str) -> None:
        program = str(Path(__file__).absolute().parents[4])
        save = shlex.join([sys.executable, "-I", "-S", program, "save", self._ask["out"]])
        flags = [*self._ask["build"], *self._ask["test"], *more, "-vet=off", "-count=1", "-exec", save]
        linked = self._run("test", *flags, *packages, *self._ask["rest"])
        self._records.write("linked", **{**linked.facts(), "stdout": linked.stdout[-_SAID:]})

    def _run(self, *arguments: str) -> Ended:
        argv, left = [self._go, *arguments], self._deadline - time.monotonic()
        return run(argv, left, Ends(WHOLE), Ends(_PRINTED), self._root, {"PWD": self._root})


def described(packages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the facts about packages as they are written, without variants compiled for a single test."""
    paths = {package["ImportPath"] for package in packages}
    made = {path for path in paths if " [" in path or path.removesuffix(".test") in paths - {path}}
    mains = {package["ImportPath"]: package for package in packages if package["ImportPath"] in made}
    own = [one for one in packages if one["ImportPath"] not in made and one.get("Dir") and not one.get("Standard")]
    known = {package["ImportPath"] for package in own}
    found: list[dict[str, Any]] = []
    for package in own:
        path: str = package["ImportPath"]
        needed = [on.partition(" ")[0] for on in mains.get(f"{path}.test", {}).get("Deps") or ()]
        found.append(
            {
                "path": path,
                "dir": package["Dir"],
                "files": [*(package.get("GoFiles") or ()), *(package.get("CgoFiles") or ())],
                "tests": [*(package.get("TestGoFiles") or ()), *(package.get("XTestGoFiles") or ())],
                "deps": [on for on in dict.fromkeys(needed) if on in known],
            }
        )
    return found


def errors_of(packages: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Return the errors that keep packages from being compiled, each once."""
    found: dict[tuple[str, str], None] = {}
    for package in packages:
        for error in [package.get("Error"), *(package.get("DepsErrors") or ())]:
            if error:
                found.setdefault((error.get("Pos", ""), error.get("Err", "")))
    return [{"pos": pos, "said": said[:_SAID]} for pos, said in list(found)[:_ERRORS]]


def save(place: str, argv: list[str]) -> None:
    """Store a test executable with its arguments and folder; `go test` starts this program in its place."""
    cwd = str(Path.cwd())
    name = hashlib.sha256(cwd.encode()).hexdigest()[:16]
    kept = Path(place, f"{name}.test")
    shutil.copyfile(argv[0], kept)
    kept.chmod(0o755)
    note = {"executable": str(kept), "dir": cwd, "arguments": argv[1:]}
    Path(place, f"{name}.json").write_text(json.dumps(note), encoding="utf-8")


def run_tests(request: dict[str, Any], records: Records) -> None:
    """Run the chosen tests, each in a process of its own."""
    deadline = time.monotonic() + request["timeout_s"]
    limit_s: float = request["per_test_s"] or request["timeout_s"]
    for test in request["tests"]:
        records.write("start", id=test["id"])
        with tempfile.TemporaryDirectory() as place:
            profile, log = Path(place, "profile"), Path(place, "log")
            kept = [f"-test.testlogfile={log}", *([f"-test.coverprofile={profile}"] if request["trace"] else [])]
            # go's own folder for this is gone with its compilation
            own = [f"{_COVERED}{place}" if word.startswith(_COVERED) else word for word in test["argv"]]
            argv = [*own, *kept, *test["rest"]]
            left = min(limit_s, deadline - time.monotonic())
            cwd: str = test["cwd"]
            ended = run(argv, left, Frames(), Ends(_PRINTED), cwd, {"PWD": cwd}, watched=True)
            logged = text_of(log)
            lines = logged.splitlines() if request["trace"] else []
            doors = [line for line in lines if line.startswith(("open ", "chdir "))][:_DOORS]
            said = {**ended.facts(), "logged": logged.startswith(_LOG)}
            records.write("ended", id=test["id"], **said, blocks=blocks_in(profile), doors=doors)
        if time.monotonic() >= deadline:
            records.write("out_of_time")
            return


def blocks_in(profile: Path) -> list[tuple[str, int]] | None:
    """Return the entered blocks of code in a profile, with counts; None if the test wrote no profile."""
    text = text_of(profile)
    if not text.startswith("mode: "):
        return None
    found: list[tuple[str, int]] = []
    for line in text.splitlines()[1:]:
        block, _, count = line.rpartition(" ")
        if count.isdecimal() and int(count) and len(found) < _BLOCKS:
            found.append((block.rpartition(" ")[0], int(count)))
    return found


def text_of(path: Path) -> str:
    """Return the beginning of a regular file, empty if there is none: tests may have put anything there."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(WHOLE).decode("utf-8", "replace")
    except OSError:
        return ""


def main() -> None:
    """Carry out the request."""
    if sys.argv[1:2] == ["save"]:
        save(sys.argv[2], sys.argv[3:])
        return
    request, records = begin()
    if request["do"] in {"build", "check"}:
        Builder(request, records).build()
    else:
        run_tests(request, records)
    records.write("end")


if __name__ == "__main__":
    main()
