"""What one queue, one hub and one worker take at scale, with real Postgres and git: `bench/fleet_scale.py`.

    nice python -P bench/fleet_scale.py [--parts looks,queue,pushes,runs] [--orders 1000] [--machines 4] [--runs 40]

Machines are workers on this computer, with a home, a state folder and a clone each, over one server and one hub.

* `looks`: the processor's time of one look of a worker, with so many open orders and as many claims at the hub.
* `queue`: orders whose drivers are stand-ins that end at once; all else is real.
* `pushes`: how many checkpoints a hub takes in a second, by path and from `git daemon`.
* `runs`: real drivers with scripted agents, to commits on branches of the hub.

It ends with 1 if a limit was exceeded, or an order was begun twice. The server writes without fsync, as tests have it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[1]
JOBS, PER_REPO, PER_PROVIDER = 4, 6, 4
TABLE = f"jobs = {JOBS}\nper_repo = {PER_REPO}\nper_provider = {PER_PROVIDER}"


def made(folder: Path, count: int, machines: int) -> Any:
    """Return machines over a queue and a hub of their own."""
    folder.mkdir()
    name = f"scale_{folder.name.replace('-', '_')}"
    dsn = import_module("queued.stores").new_database(name)
    return import_module("fleet.scale").make(folder, dsn, count, machines, TABLE)


def git(folder: Path, *argv: str, said: str | None = None) -> str:
    """Return what git prints."""
    done = subprocess.run(["git", *argv], cwd=folder, input=said, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def claim_all(shop: Any, count: int) -> None:
    """Let the hub have a claim and a checkpoint of another machine's run for so many issues."""
    tip = git(shop.hub, "rev-parse", "main")
    moves: list[str] = []
    for issue in shop.machines[0].ids[-count:]:
        run = f"shop-{issue.lower()}-00000000/run-{issue}"
        said = {"run": run, "worktree": f"/srv/{issue}", "state": "parked", "host": "other", "order": None}
        claim = git(shop.hub, "hash-object", "-w", "--stdin", said=json.dumps(said))
        moves += [f"create refs/redfirst/claims/{issue} {claim}", f"create refs/redfirst/checkpoints/{run} {tip}"]
    git(shop.hub, "update-ref", "--stdin", said="".join(f"{one}\n" for one in moves))


def looks(place: Path, options: argparse.Namespace) -> list[str]:
    """Return what a look takes."""
    from pipeline.app.work import RepositoryWork  # noqa: PLC0415  (the path is set by `main`)

    found: list[str] = []
    for count in (10, 100, options.orders):
        shop = made(place / f"look-{count}", count, 1)
        began = time.process_time()
        shop.place(count)
        placed = (time.process_time() - began) / count
        took: dict[str, str] = {}
        for claims in (0, count):
            if claims:
                claim_all(shop, claims)
            log, work = shop.log(), RepositoryWork(shop.repository, shop.machines[0].project.environment())
            work.look(log)
            times: list[tuple[float, float]] = []
            for _ in range(5):
                clock, used = time.monotonic(), cpu_s()
                work.look(log)
                times.append((cpu_s() - used, time.monotonic() - clock))
            cpu, wall = (statistics.median(one[at] for one in times) for at in (0, 1))
            took["with" if claims else "without"] = f"{cpu * 1000:.0f} ms ({wall * 1000:.0f} by the clock)"
        found.append(f"| {count} | {took['without']} | {took['with']} | {placed * 1000:.1f} ms |")
    head = "| Open orders | A look | With as many claims at the hub | To place an order |"
    return [head, "|---|---|---|---|", *found]


def queue(place: Path, options: argparse.Namespace) -> list[str]:
    """Return how fast orders go through stand-ins."""
    scale = import_module("fleet.scale")
    shop = made(place / "queue", options.orders, options.machines)
    began = time.monotonic()
    shop.place(options.orders)
    placed = options.orders / (time.monotonic() - began)
    with shop.server_statements() as statements:
        lines, clock, used = driven(shop, real=False)
    check(scale, shop, lines)
    return [
        (
            f"* {options.orders} orders, {options.machines} machines, stand-ins as drivers. {placed:.0f} orders "
            f"a second are placed in one transaction, {options.orders / clock:.1f} begin and end."
        ),
        (
            f"* Each costs {used / options.orders * 1000:.0f} ms of the processor in workers and stand-ins, and "
            f"{statements() / options.orders:.0f} transactions of Postgres."
        ),
        limits_held(scale, shop, lines),
    ]


def runs(place: Path, options: argparse.Namespace) -> list[str]:
    """Return how fast real drivers go, and what they leave at the hub."""
    scale = import_module("fleet.scale")
    shop = made(place / "runs", options.runs, options.machines)
    git(shop.hub, "config", "core.logAllRefUpdates", "always")
    shop.place(options.runs, scripts=True)
    lines, clock, used = driven(shop, real=True)
    check(scale, shop, lines)
    refs = git(shop.hub, "for-each-ref", "--format=%(refname)", "refs/redfirst/checkpoints").splitlines()
    pushes = [len((shop.hub / "logs" / ref).read_text().splitlines()) for ref in refs]
    sizes = [size_of(shop.hub, ref) for ref in refs]
    branches = len(git(shop.hub, "for-each-ref", "--format=%(refname)", "refs/heads/gal-*").splitlines())
    if branches != options.runs or len(refs) != options.runs:
        sys.exit(f"{options.runs} runs left {branches} branches and {len(refs)} checkpoints")
    disk = git(shop.hub, "count-objects", "-v").splitlines()
    kib = sum(int(one.partition(": ")[2]) for one in disk if one.startswith(("size:", "size-pack:")))
    return [
        (
            f"* {options.runs} real drivers on {options.machines} machines: {options.runs / clock * 60:.0f} runs a "
            f"minute, {used / options.runs:.1f} s of the processor for each."
        ),
        (
            f"* A run pushes {statistics.median(pushes):.0f} times. The files of its last checkpoint are "
            f"{statistics.median(sizes) / 1000:.0f} kB. The hub keeps {kib / options.runs:.0f} KiB of a run."
        ),
        limits_held(scale, shop, lines),
    ]


def driven(shop: Any, *, real: bool) -> tuple[list[Any], float, float]:
    """Return the lines about all orders, and the seconds that they took by the clock and of the processor."""
    before, began = cpu_s(), time.monotonic()
    with shop.workers(real=real):
        lines = shop.wait_for_all(patience_s=3600)
        clock = time.monotonic() - began
    return lines, clock, cpu_s() - before


def check(scale: Any, shop: Any, lines: Sequence[Any]) -> None:
    """End with 1 where a limit was exceeded, or an order was begun twice or came to nothing."""
    log = shop.log()
    log.read_on()
    bad = [one for one in log.orders.values() if one.outcome != "completed" or one.starts != 1]
    if bad:
        sys.exit(f"{len(bad)} orders came to nothing or had several drivers, as {bad[0]}")
    most, each = scale.most_of_all(shop, lines)
    if most > PER_REPO or max(each) > PER_PROVIDER:
        sys.exit(f"limits were exceeded: {most} of the repository, {each} of the providers")


def limits_held(scale: Any, shop: Any, lines: Sequence[Any]) -> str:
    """Return how many drivers there were at most."""
    most, each = scale.most_of_all(shop, lines)
    return (
        f"* At most {most} drivers of the repository (limit {PER_REPO}), and {' and '.join(map(str, each))} of the two "
        f"providers (limit {PER_PROVIDER}). No order had two drivers."
    )


def size_of(hub: Path, ref: str) -> int:
    """Return how many bytes the files of a run folder have in a checkpoint."""
    listed = git(hub, "ls-tree", "-r", "--format=%(objectsize)", f"{ref}:run")
    return sum(int(one) for one in listed.splitlines())


def pushes(place: Path, options: argparse.Namespace) -> list[str]:
    """Return how many pushes a hub takes, by who carries them, how many push at once, and how many runs it has."""
    found = ["| Runs at the hub | At once | By path | git daemon |", "|---|---|---|---|"]
    for kept in (10, 1000, 10_000):
        for at_once in (1, 4):
            took = [pushed(place / f"push-{kept}-{at_once}-{kind}", kept, at_once, kind, options.pushes) for kind in (
                "path", "daemon",
            )]  # fmt: skip
            found.append(f"| {kept} | {at_once} | {took[0]:.1f}/s | {took[1]:.1f}/s |")
    return found


def pushed(folder: Path, kept: int, at_once: int, kind: str, count: int) -> float:
    """Return how many pushes of a checkpoint a second a new hub takes that has so many already."""
    from pipeline import repo  # noqa: PLC0415  (the same)

    folder.mkdir()
    hub, tree = folder / "hub.git", folder / "tree"
    tree.mkdir()
    for number in range(20):
        (tree / f"file-{number}.json").write_text(f"{number}\n" * 1000, encoding="utf-8")
    git(folder, "init", "--quiet", "--bare", "--initial-branch=main", str(hub))
    git(tree, "init", "--quiet")
    git(tree, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "-m", "x")
    git(tree, "push", "--quiet", str(hub), "HEAD:refs/heads/main")
    tip = git(tree, "rev-parse", "HEAD")
    made_before = "".join(f"create refs/redfirst/checkpoints/old/run-{number} {tip}\n" for number in range(kept))
    git(hub, "update-ref", "--stdin", said=made_before)
    git(hub, "pack-refs", "--all")
    url = str(hub) if kind == "path" else daemon_url(hub)
    clones = [folder / f"clone-{number}" for number in range(at_once)]
    for clone in clones:
        git(folder, "clone", "--quiet", str(hub), str(clone))

    def push(clone: Path) -> None:
        door, last, ref = repo.Repository.find(clone), repo.NO_OBJECT, f"refs/redfirst/checkpoints/{clone.name}/run"
        who = repo.Signature("a", "a@b", "1700000000 +0000")
        for number in range(count // at_once):
            oids = door.write_files([("run/journal.jsonl", f"{clone.name} {number}\n".encode() * 2000)])
            changes = [repo.TreeChange(path, repo.Entry(path, "100644", oid)) for path, oid in oids.items()]
            commit = door.commit_tree(door.build_tree(door.tree_of("HEAD"), changes), [tip], f"{number}\n", who)
            refused = door.push_all(url, [repo.RefMove(ref, commit, last)])
            if refused:
                sys.exit(f"the hub refused {refused}")
            last = commit

    began = time.monotonic()
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(push, clones))
    return count // at_once * at_once / (time.monotonic() - began)


def daemon_url(hub: Path) -> str:
    """Return the URL of a hub that `git daemon` serves on loopback, as long as this process lives."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    argv = ["daemon", "--listen=127.0.0.1", f"--port={port}", f"--base-path={hub.parent}", "--export-all"]
    DAEMONS.append(subprocess.Popen(["git", *argv, "--enable=receive-pack"], stderr=subprocess.DEVNULL))
    url = f"git://127.0.0.1:{port}/{hub.name}"
    until = time.monotonic() + 20
    while subprocess.run(["git", "ls-remote", url], capture_output=True, check=False).returncode:
        if time.monotonic() > until:
            sys.exit("git daemon does not answer")
    return url


DAEMONS: list[subprocess.Popen[bytes]] = []


def cpu_s() -> float:
    """Return the processor's seconds of this process, and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


PARTS = {"looks": looks, "queue": queue, "pushes": pushes, "runs": runs}


def main() -> None:
    """Print the figures of each part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--orders", type=int, default=1000)
    parser.add_argument("--machines", type=int, default=4)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--pushes", type=int, default=60)
    options = parser.parse_args()
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the beginning", flush=True)
    try:
        with tempfile.TemporaryDirectory(prefix="redfirst-bench-") as place:
            for part in options.parts.split(","):
                print(f"\n{part}\n", *PARTS[part](Path(place), options), sep="\n", flush=True)
    finally:
        for daemon in DAEMONS:
            daemon.terminate()
            daemon.wait()


if __name__ == "__main__":
    main()
