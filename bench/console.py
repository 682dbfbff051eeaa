"""How soon an event is in a browser, what that costs, and what a page takes beside `show`: 50 journals, 20 readers.

    python -P bench/console.py [--seconds N]

The journals get 20 events a second between them. Of each event the slowest reader counts. A page is asked for by one
who was let in, after the first time; `show` is a process, as a person starts it.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

JOURNALS = 50
READERS = 20
EACH_S = 0.05
REDFIRST = Path(sys.executable).with_name("redfirst")


def made(place: Path, env: dict[str, str]) -> Path:
    """Return a repository with so many copies of a real run."""
    subprocess.run([REDFIRST, "demo", place / "demo"], env=env, capture_output=True, check=True)
    repository = place / "demo" / "shop"
    (first,) = (repository / ".workflow").glob("run-*")
    for number in range(2, JOURNALS + 1):
        copy = first.with_name(f"{first.name}@{number}")
        shutil.copytree(first, copy)
        record = json.loads((copy / "run.json").read_text(encoding="utf-8"))
        (copy / "run.json").write_text(json.dumps(record | {"run_id": copy.name}), encoding="utf-8")
    return repository


class Console:
    """The console as a process of its own, with a session."""

    def __init__(self, repository: Path, env: dict[str, str]) -> None:
        argv = [str(REDFIRST), "console"]
        self.process = subprocess.Popen(argv, cwd=repository, env=env, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        link = self.process.stdout.readline().split(": ", 1)[1].strip()
        self.host, _, query = link.removeprefix("http://").partition("/")
        self.port = int(self.host.rpartition(":")[2])
        answer = self.asked(f"/{query}")
        self.cookie = (answer.getheader("set-cookie") or "").partition(";")[0]
        answer.read()

    def asked(self, path: str, cookie: str = "") -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", path, headers={"Host": self.host, "Cookie": cookie, "Accept": "text/html"})
        return connection.getresponse()

    def used(self) -> float:
        """Return the seconds of the processor that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mb(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text(encoding="utf-8").split()[1])
        return pages * resource.getpagesize() / 1e6


def reads(console: Console, session: str, seen: dict[str, list[float]]) -> None:
    """Listen until the stream ends; note when each event was there."""
    answer = console.asked("/events", session)
    while line := answer.readline():
        if line.startswith(b"id: "):
            seen.setdefault(line[4:].strip().decode(), []).append(time.time())


def appended(repository: Path, seconds: float) -> dict[str, float]:
    """Add events to the journals in turn; return when each was there."""
    folders = sorted((repository / ".workflow").glob("run-*"))
    counts = {folder: sum(1 for _ in (folder / "journal.jsonl").open("rb")) for folder in folders}
    template = json.loads((folders[0] / "journal.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    written: dict[str, float] = {}
    for folder in itertools.islice(itertools.cycle(folders), int(seconds / EACH_S)):
        counts[folder] += 1
        line = template | {"seq": counts[folder]}
        with (folder / "journal.jsonl").open("a", encoding="utf-8") as journal:
            journal.write(json.dumps(line) + "\n")
        written[f"{folder.name}/{counts[folder]}"] = time.time()
        time.sleep(EACH_S)
    return written


def quickest(call: object, times: int) -> float:
    found: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        call()  # type: ignore[operator]
        found.append(time.perf_counter() - began)
    return min(found)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15)
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory(prefix="redfirst-bench-") as place:
        env = {"PATH": os.environ["PATH"], "HOME": place, "TMPDIR": place, "LC_ALL": "C.UTF-8"}
        repository = made(Path(place), env)
        console = Console(repository, env)
        run = next((repository / ".workflow").glob("run-*@2")).name
        page = quickest(lambda: console.asked(f"/runs/{run}", console.cookie).read(), 10)
        show = quickest(
            lambda: subprocess.run(
                [REDFIRST, "show", run, "-v"], cwd=repository, env=env, capture_output=True, check=True
            ),
            10,
        )
        seen: dict[str, list[float]] = {}
        sessions = [console.cookie]
        for _ in range(READERS // 4 - 1):
            assert console.process.stdout is not None
            link = console.process.stdout.readline().split(": ", 1)[1].strip()
            answer = console.asked(f"/?{link.partition('?')[2]}")
            sessions.append((answer.getheader("set-cookie") or "").partition(";")[0])
            answer.read()
        for number in range(READERS):
            threading.Thread(target=reads, args=(console, sessions[number // 4], seen), daemon=True).start()
        time.sleep(3)
        idle_from = console.used()
        time.sleep(5)
        idle = (console.used() - idle_from) / 5
        from_ = console.used()
        written = appended(repository, seconds)
        time.sleep(1)
        busy = (console.used() - from_) / (seconds + 1)
        found = {id_.partition("/")[2]: times for id_, times in seen.items()}
        assert all(len(found.get(id_, ())) == READERS for id_ in written), "an event is missing, or double"
        late = sorted(max(found[id_]) - at for id_, at in written.items())
        print(f"{JOURNALS} journals, {READERS} readers, {1 / EACH_S:.0f} events a second")
        print(f"event to the slowest reader: median {statistics.median(late):.2f} s, slowest {late[-1]:.2f} s")
        print(f"processor: {idle:.1%} of a core idle, {busy:.1%} with events; {console.resident_mb():.0f} MB")
        print(f"a run's page: {page / show:.2f} of `redfirst show -v` ({page * 1000:.0f} ms, {show * 1000:.0f} ms)")
        console.process.terminate()
        console.process.wait()


if __name__ == "__main__":
    main()
