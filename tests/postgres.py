"""A real Postgres for tests: one for all workers of a run of tests, in a folder of its own, gone at the end.

It is Debian's, started as an ordinary user, since it refuses root. A process watches over it, which starts it, and ends
it with the run of tests.
"""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

import forked
import pytest

from pipeline.queue.postgres import make_schema

_FAST: Final = {"fsync": "off", "full_page_writes": "off", "listen_addresses": "", "max_connections": "60"}
_RULES: Final = "local all guarded scram-sha-256\nlocal all all trust\n"


def programs() -> Path | None:
    """Return the folder of the server's programs, of the newest version; None where it is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda one: int(one.parts[-3]))
    return found[-1].parent if found else None


needs_postgres = pytest.mark.skipif(programs() is None, reason="Postgres is not installed: scripts/system-packages.sh")


class Server:
    """A server in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def dsn(self, database: str = "postgres", user: str = "postgres") -> str:
        """Return a database of it, as libpq takes it."""
        return f"host={self.folder} user={user} dbname={database}"

    def make(self) -> None:
        """Make its files."""
        self.folder.mkdir(mode=0o755, parents=True)
        if os.getuid() == 0:
            shutil.chown(self.folder, "nobody", "nogroup")
        data = self.folder / "data"
        self._run("initdb", "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        (data / "pg_hba.conf").write_text(_RULES)

    def start(self) -> None:
        """Start it, and return when it answers."""
        settings = " ".join(f"-c {name}='{value}'" for name, value in _FAST.items())
        options = f"{settings} -c unix_socket_directories='{self.folder}'"
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-w", "-l", f"{self.folder}/log", "-o", options, "start")

    def stop(self) -> None:
        """End it as a crash would, and return when it is gone."""
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-w", "-m", "immediate", "stop")

    def _run(self, program: str, *argv: str) -> None:
        bin_folder = programs()
        assert bin_folder is not None
        nobody = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.getuid() == 0 else []
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LC_ALL": "C", "TZ": "UTC"}
        said = self.folder / "said"
        with said.open("ab") as out:  # a server that is started keeps what it is given
            done = subprocess.run(
                [*nobody, str(bin_folder / program), *argv], cwd="/", env=env, stdout=out, stderr=out, check=False
            )
        assert done.returncode == 0, said.read_text()


@cache
def server() -> Server:
    """Return the server of this run of tests; the first who asks starts it."""
    session = os.environ.setdefault(forked.SESSION, str(os.getpid()))
    folder = Path(tempfile.gettempdir()) / f"redfirst-postgres-{session}"
    with Path(f"{folder}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            here, there = os.pipe()
            os.set_inheritable(there, True)
            argv = [sys.executable, str(Path(__file__).resolve()), str(folder), session, str(there)]
            env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
            os.posix_spawn(sys.executable, argv, env, setsid=True)  # no `Popen`: nobody waits for it
            os.close(there)
            with os.fdopen(here, "rb") as told:
                assert told.read() == b"ready", (folder / "said").read_text()
    return Server(folder)


@cache
def database() -> str:
    """Return a database with the tables of redfirst, which each test uses with a name of its own."""
    make_schema(server().dsn())
    return server().dsn()


def own_database(name: str) -> str:
    """Return one that no other test uses, for what tells of all who are connected."""
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(server().dsn(), autocommit=True) as session:
        session.execute(f"CREATE DATABASE {name}")
    make_schema(server().dsn(name))
    return server().dsn(name)


def _watch(folder: Path, session: int, told: int) -> None:
    """Start the server, say so, and remove it when the run of tests has ended."""
    owner = os.pidfd_open(session)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    own = Server(folder)
    own.make()
    own.start()
    os.write(told, b"ready")
    os.close(told)
    select.select([owner], [], [])
    own.stop()
    shutil.rmtree(folder)
    Path(f"{folder}.lock").unlink(missing_ok=True)


if __name__ == "__main__":
    _watch(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
