"""A repository that was cloned and not trusted: nothing of it runs on the host, whatever is asked about it (ADR-R89).

What it holds leaves a mark wherever it runs and can write; a trace of every execve tells what was started.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from attacks.tracing import Traced, traced
from attacks.world import is_demanded, make_box
from kit import FILES, GREET_DONE, HONEST, TEST_GREET_NEW, make_project
from languages.direct import write

from pipeline.errors import UserError
from pipeline.repo import Repository

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

pytestmark = pytest.mark.slow

SYSTEM: Final = "/usr/local/bin:/usr/bin:/bin"
STARTED: Final = frozenset(
    {
        "redfirst", "python", "python3", "git", "bwrap", "unshare", "nsenter",  # always
        "rustc", "cargo", "go", "node",  # to ask for a language
    }
)  # fmt: skip
"""The programs of the table in docs/explanation/safety.md, by their names."""


def in_python(mark: Path) -> str:
    return f"try:\n    open({str(mark)!r}, 'a').write(__file__)\nexcept OSError:\n    pass\n"


def in_shell(mark: Path) -> str:
    return f'#!/bin/sh\necho "$0" >> {mark}\n'


def shim(log: Path, language: str, file: str, real: str | None) -> str:
    """Return a version manager's script: it takes a path for a version, from a file of the working folder or above."""
    go_on = f'exec {real} "$@"' if real is not None else "exit 1"
    return f"""#!/bin/sh
echo "{language} $PWD" >> {log}
at=$PWD
while [ "$at" != / ]; do
  if [ -f "$at/{file}" ]; then
    chosen=$(tr -d '\\357\\273\\277' < "$at/{file}" | sed -n 's/.*path[ =":]*\\([^" ]*\\).*/\\1/p')
    [ -n "$chosen" ] && exec "$at/$chosen" "$@"
  fi
  at=$(dirname "$at")
done
{go_on}
"""


class Hostile:
    """A repository full of code that would like to run, and the user who cloned it."""

    def __init__(self, tmp_path: Path, more: Mapping[str, str], programs: Iterable[str] = ()) -> None:
        self.users = False
        self.mark, self.asked, self.log = tmp_path / "ran", tmp_path / "asked", tmp_path / "trace"
        code, script = in_python(self.mark), in_shell(self.mark)
        shadows = dict.fromkeys(("json.py", "pytest.py", "site.py", "encodings/__init__.py"), code)
        files = {
            **FILES,
            **(shadows if more is WANTS_TRUST else {}),  # where tests are measured they would only break these
            "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
            '[tool.pytest.ini_options]\naddopts = "-p evil"\npythonpath = ["."]\ntestpaths = ["tests"]\n',
            **dict.fromkeys(
                ("conftest.py", "evil.py", "sitecustomize.py", "usercustomize.py", "backend.py", "setup.py"), code
            ),
            # nothing of ours may take them for the modules of these names
            **dict.fromkeys(("pipeline/__init__.py", "todo/__init__.py", "typer.py"), code),
            ".gitattributes": "* diff=evil merge=evil\nsvc/** filter=evil\n",
            ".gitignore": ".venv/\nnode_modules/\n",
            ".python-version": "path:tools/python\n",
            ".node-version": "path:../tools/node\n",
            ".tool-versions": "python path:tools/python\nnodejs path:tools/node\n",
            ".envrc": f"touch {self.mark}\n",
            "native/Cargo.toml": '[package]\nname = "n"\nversion = "1.0.0"\nbuild = "build.rs"\n',
            "native/build.rs": "fn main() {}\n",
            "rust-toolchain.toml": '\ufeff[toolchain]\npath = "tools/rustc"\n',
            "web/package.json": '{"scripts": {"test": "node --test", "pretest": "./evil.sh"}}',
            "svc/go.mod": "module example.org/svc\n\ngo 1.19\n\ntoolchain go1.99.9\n",
            "svc/svc.go": "package svc\n",
            **more,
        }
        tools = ("tools/python", "tools/node", "tools/rustc", "tools/bin/rustc", "bin/git", "bin/python3", "bin/go")
        scripts = dict.fromkeys((*tools, *programs), script)
        self.project = make_project(tmp_path, files)
        write(self.project.root, scripts)
        for name in scripts:
            (self.project.root / name).chmod(0o755)
        self.project.git("add", "--force", "--all")
        self.project.git("commit", "--quiet", "--message", "more")
        self.project.use_script(HONEST)
        self.project.env["PATH"] = self.search_path(tmp_path / "shims")

    def search_path(self, shims: Path) -> str:
        python = Path(sys.executable)
        known = {
            "python3": ("python", ".python-version", str(python)),
            "node": ("node", ".node-version", None),
            "rustc": ("rustc", "rust-toolchain.toml", None),
            "cargo": ("cargo", "rust-toolchain.toml", None),
            "go": ("go", "go.mod", None),
        }
        write(shims, {name: shim(self.asked, *facts) for name, facts in known.items()})
        for name in known:
            (shims / name).chmod(0o755)
        return f"{shims}:{SYSTEM}"

    def has_an_environment(self) -> None:
        """Make the user's own environment, which git ignores; it is first on PATH, and a pytest is in it."""
        self.users = True
        place = self.project.root / ".venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
        site = next(place.glob("lib/python*/site-packages"))
        (site / "more.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
        script = place / "bin" / "pytest"
        script.write_text(f"#!{place}/bin/python\nimport pytest\nraise SystemExit(pytest.console_main())\n")
        script.chmod(0o755)
        self.project.env["PATH"] = f"{place}/bin:{self.project.env['PATH']}"

    def redfirst(self, *argv: str, cwd: str = ".") -> Traced:
        here = (self.project.root / cwd).resolve()
        return traced(*argv, cwd=here, env={**self.project.environment(), "PWD": str(here)}, log=self.log)

    def nothing_ran(self, seen: Traced) -> None:
        root = self.project.root.resolve()
        theirs = {path for path in seen.started if not path.is_absolute() or path.is_relative_to(root)}
        if self.users:
            theirs -= {path for path in theirs if path.is_relative_to(root / ".venv")}
        assert theirs == set(), seen.output
        unknown = {path.name for path in seen.started} - STARTED
        unknown -= {name for name in unknown if name.startswith(("git-", "python3."))}
        assert unknown == set(), "programs that are not in the table of docs/explanation/safety.md"
        assert not self.mark.exists(), self.mark.read_text()
        if self.asked.exists():
            assert {line.split()[1] for line in self.asked.read_text().splitlines()} == {"/"}


@pytest.fixture(autouse=True)
def _box() -> None:
    box, why = make_box("bubblewrap")
    if box is None:
        assert not is_demanded("bubblewrap"), why
        pytest.skip(why)


WANTS_TRUST: Final = {"uv.lock": "version = 1\n", ".worktreeinclude": ".env\n"}
PROGRAMS: Final = (".venv/bin/python", ".venv/bin/pytest", "node_modules/.bin/node")
COMMANDS: Final = (
    ("run", "GAL-1"),
    ("doctor",),
    ("doctor", "--tests"),
    ("config", "show"),
    ("tdd", "check-green", "--base", "main"),
    ("tdd", "check-red", "--base", "main"),
    ("verify", "HEAD"),
    ("agents", "try", "make", "--kind", "implement", "--issue", "GAL-1", "--write", "greet.py"),
)


def uv(hostile: Hostile) -> None:
    """Put a uv on PATH that does what the real one does with such a project: it runs its build backend."""
    folder = hostile.project.home / "uv"
    write(folder, {"uv": f"#!/bin/sh\nexec {sys.executable} backend.py\n"})
    (folder / "uv").chmod(0o755)
    hostile.project.env["PATH"] = f"{folder}:{hostile.project.env['PATH']}"


@pytest.mark.parametrize("argv", COMMANDS, ids=lambda argv: " ".join(argv[:2]))
@pytest.mark.broad(but_first=1)
def test_what_wants_trust_is_refused_by_every_command_and_nothing_runs(tmp_path: Path, argv: tuple[str, ...]) -> None:
    hostile = Hostile(tmp_path, WANTS_TRUST, PROGRAMS)
    uv(hostile)
    seen = hostile.redfirst(*argv)
    hostile.nothing_ran(seen)
    assert seen.exit_code == (0 if argv[0] == "config" else 2), seen.output
    assert ".venv, uv.lock, .worktreeinclude" in seen.output or '.venv = "tracked"' in seen.output


@pytest.mark.broad
def test_trust_asks_at_a_terminal_only_and_nothing_runs(tmp_path: Path) -> None:
    hostile = Hostile(tmp_path, WANTS_TRUST, PROGRAMS)
    uv(hostile)
    asked = hostile.redfirst("trust", "--json")
    hostile.nothing_ran(asked)
    assert "there is no terminal" in asked.output.lower()


@pytest.mark.broad
def test_the_control_what_is_trusted_does_run_and_is_seen(tmp_path: Path) -> None:
    hostile = Hostile(tmp_path, WANTS_TRUST, PROGRAMS)
    hostile.project.env["REDFIRST_TRUST"] = "1"
    seen = hostile.redfirst("doctor")
    assert hostile.project.root / ".venv/bin/python" in seen.started
    assert str(hostile.project.root / ".venv/bin/python") in hostile.mark.read_text()


@pytest.mark.parametrize("command", ['["tools/python", "-m", "pytest"]', '["sh", "-c", "./tools/python", "pytest"]'])
@pytest.mark.broad
def test_a_configured_starter_is_refused_and_is_the_control_once_it_is_trusted(tmp_path: Path, command: str) -> None:
    hostile = Hostile(tmp_path, {"redfirst.toml": f"[toolchains.pytest]\ncommand = {command}\n"})
    for argv in (("doctor",), ("tdd", "check-green", "--base", "main")):
        seen = hostile.redfirst(*argv)
        hostile.nothing_ran(seen)
        assert "toolchains.pytest.command" in seen.output
    hostile.project.env["REDFIRST_TRUST"] = "1"
    hostile.redfirst("doctor")
    assert hostile.mark.exists()


@pytest.mark.parametrize(
    "config",
    [
        "",
        '[toolchains.pytest]\ncommand = ["python3", "-m", "pytest"]\n',
        '[toolchains.pytest]\ncommand = ["pytest"]\n',
    ],
)
@pytest.mark.broad
def test_a_project_that_asks_for_nothing_is_measured_in_the_box_alone(tmp_path: Path, config: str) -> None:
    hostile = Hostile(tmp_path, {"redfirst.toml": config} if config else {})
    hostile.has_an_environment()
    doctor = hostile.redfirst("doctor")
    hostile.nothing_ran(doctor)
    assert "asks for nothing that needs trust" in doctor.output
    assert "Python 3" in doctor.output
    hostile.nothing_ran(hostile.redfirst("doctor", cwd="web"))
    hostile.project.write({"greet.py": GREET_DONE, "tests/test_greet.py": TEST_GREET_NEW})
    green = hostile.redfirst("tdd", "check-green")
    hostile.nothing_ran(green)
    assert green.boxes > 0
    assert green.exit_code == 0, green.output


@pytest.mark.broad
def test_a_whole_run_and_its_verification_start_nothing_of_the_repository(tmp_path: Path) -> None:
    checks = 'commands = [["tools/python"], ["./tools/rustc"], ["python", "-c", "0"]]'
    hostile = Hostile(tmp_path, {"redfirst.toml": f"[checks]\n{checks}\n"})
    hostile.has_an_environment()
    # a folder of the repository that the user has on PATH, by its own name and relative
    hostile.project.env["PATH"] = f"{hostile.project.root}/bin:bin:{hostile.project.env['PATH']}"
    run = hostile.redfirst("run", "GAL-1")
    hostile.nothing_ran(run)
    assert run.boxes > 0
    assert run.exit_code == 0, run.output
    verified = hostile.redfirst("verify", "main..HEAD")
    hostile.nothing_ran(verified)
    assert verified.exit_code == 0, verified.output


def test_a_folder_of_the_tree_that_looks_like_a_repository_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its config could name programs: whoever stands in it is told so, and no command of git obeys it."""
    mark = tmp_path / "ran"
    config = f'[core]\n\tworktree = tree\n\tbare = false\n[filter "evil"]\n\tclean = touch {mark}\n'
    inner = {"HEAD": "ref: refs/heads/main\n", "config": config, "refs/x": "", "objects/x": "", "tree/a": "x\n"}
    project = make_project(tmp_path, {**FILES, **{f"evil/{name}": text for name, text in inner.items()}})
    monkeypatch.chdir(project.root / "evil")
    with pytest.raises(UserError, match=r"safe\.bareRepository"):
        Repository.find(Path.cwd())
    # the control: git itself takes it for one
    (tmp_path / "attributes").write_text("* filter=evil\n")
    argv = ["git", "-c", f"core.attributesFile={tmp_path / 'attributes'}", "hash-object", "--path", "a", "--stdin"]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    subprocess.run(argv, cwd=project.root / "evil", env=env, input=b"x", check=True, capture_output=True)
    assert mark.exists()
