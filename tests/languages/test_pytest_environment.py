"""Which interpreter runs a project's tests, and where editable installs make it look."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import anyio
import pytest
from languages.direct import TOOLCHAIN, measure, write

from pipeline.process import Mount
from pipeline.testing.languages.environments.installed import editable_mounts
from pipeline.testing.languages.protocol import Environment, Lookup, Missing, PlacedFolder, View
from pipeline.testing.languages.python.environment import ask, interpreter_of

pytestmark = pytest.mark.slow


SITE = sysconfig.get_path("purelib")
UV = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")


def find(
    worktree: Path, main: Path | None = None, command: tuple[str, ...] | None = None, search_path: str = "/nowhere"
) -> Environment | Missing:
    state = worktree.parent / "state"
    return anyio.run(TOOLCHAIN.find_environment, Lookup(worktree, main or worktree, command, state, search_path))


def venv(place: Path, *lines: str) -> Path:
    """Make a small environment whose `.pth` file holds the lines; a line with our site-packages gives it pytest."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    site = next(place.glob("lib/python*/site-packages"))
    (site / "extra.pth").write_text("".join(f"{line}\n" for line in lines))
    return site


def found(answer: Environment | Missing) -> Environment:
    assert isinstance(answer, Environment), answer
    return answer


@pytest.mark.broad
def test_the_worktrees_environment_comes_before_that_of_the_main_checkout(tmp_path: Path) -> None:
    worktree, main = write(tmp_path / "tree", {"x.py": ""}), write(tmp_path / "main", {"x.py": ""})
    venv(main / ".venv", SITE)
    assert found(find(worktree, main)).prefix == main / ".venv"
    venv(worktree / "venv", SITE)
    env = found(find(worktree, main))
    assert env.command == (str(worktree / "venv/bin/python"), "-m", "pytest")
    assert Mount(worktree / "venv", worktree / "venv") in env.mounts
    assert Mount(Path(SITE), Path(SITE)) in env.mounts


@pytest.mark.broad
def test_a_configured_wrapper_is_resolved_without_running_project_code(tmp_path: Path) -> None:
    tree = write(
        tmp_path / "tree",
        {
            "tools/py": f'#!/bin/sh\nexec {sys.executable} "$@"\n',
            "conftest.py": "open('was_here', 'w').close()\n",
        },
    )
    (tree / "tools/py").chmod(0o755)
    env = found(find(tree, command=("tools/py", "-m", "pytest", "-k", "x")))
    assert env.command == (sys.executable, "-m", "pytest", "-k", "x")
    assert not (tree / "was_here").exists()


@pytest.mark.parametrize("command", [("make", "test"), ("no-such-program", "-m", "pytest"), ("/bin/true", "pytest")])
def test_a_configured_command_that_does_not_lead_to_pytest_is_named(tmp_path: Path, command: tuple[str, ...]) -> None:
    tree = write(tmp_path / "tree", {"x.py": ""})
    answer = find(tree, command=command, search_path=os.environ["PATH"])
    assert isinstance(answer, Missing)
    assert command[0] in answer.sentence


@pytest.mark.broad
@pytest.mark.skipif(UV is None, reason="uv is not installed")
def test_a_locked_project_gets_a_private_environment_and_keeps_its_checkout_clean(tmp_path: Path) -> None:
    major, minor = sys.version_info[:2]
    wants = f'requires-python = ">={major}.{minor}"'
    tree = write(
        tmp_path / "tree",
        {
            "pyproject.toml": f'[project]\nname = "pkg"\nversion = "1"\n{wants}\n[tool.uv]\npackage = false\n',
            "uv.lock": f"""
                version = 1
                {wants}

                [[package]]
                name = "pkg"
                version = "1"
                source = {{ virtual = "." }}
                """,
        },
    )
    assert UV is not None
    answer = find(tree, search_path=f"{Path(UV).parent}:{sys.base_prefix}/bin")
    assert isinstance(answer, Missing)
    assert "pytest is not in uv.lock" in answer.sentence
    assert (tmp_path / "state/venv/bin/python").exists()
    assert sorted(entry.name for entry in tree.iterdir()) == ["pyproject.toml", "uv.lock"]


def test_editable_installs_are_found_by_path_by_finder_and_by_record(tmp_path: Path) -> None:
    tree = write(
        tmp_path / "tree",
        {"src/pkg/core.py": "", "python/other/core.py": "", "native/native.py": ""},
    )
    site = venv(tree / ".venv", SITE, str(tree / "src"), "import __editable___other_finder")
    write(
        site,
        {
            "__editable___other_finder.py": f"MAPPING = {{'other': {str(tree / 'python/other')!r}}}\n",
            "native-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: native\nVersion: 1\n",
            "native-1.dist-info/direct_url.json": json.dumps(
                {"url": f"file://{tree}/native", "dir_info": {"editable": True}}
            ),
        },
    )
    env = found(find(tree))
    assert env.editable_roots == (
        PlacedFolder(tree / "native", "native"),
        PlacedFolder(tree / "python/other", "python/other"),
        PlacedFolder(tree / "src", "src"),
    )
    view = View(Mount(write(tmp_path / "view", {"src/pkg/core.py": ""}), tmp_path / "work", writable=True))
    assert editable_mounts(env, view) == (view.mount.below("src", tree / "src"),)


def test_an_editable_install_into_the_checkout_does_not_hide_the_view(tmp_path: Path) -> None:
    files = {
        "src/core.py": "def answer():\n    return 41\n",
        "tests/test_it.py": "import core\n\ndef test_it(): assert core.answer() == 42\n",
    }
    tree = write(tmp_path / "tree", files)
    venv(tree / ".venv", SITE, str(tree / "src"))
    env = found(find(tree))
    view = write(tmp_path / "view", {**files, "src/core.py": "def answer():\n    return 42\n"})
    observation = measure(view, env=env)
    assert observation.modules["core"] == "src/core.py"
    assert [record.outcome for record in observation.records.values()] == ["passed"]


def test_files_that_control_tests_are_known_by_name() -> None:
    paths = (
        "tests/conftest.py",
        "pyproject.toml",
        "a/b.pth",
        "requirements-dev.txt",
        "tests/test_conftest.py",
        "src/a.py",
    )
    assert [TOOLCHAIN.is_control_path(path) for path in paths] == [True, True, True, True, False, False]


def test_the_secrets_of_another_project_that_is_imported_from_are_not_shown(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"pkg/__init__.py": ""})
    text = {"lib.py": "", ".env": "TOKEN=x", ".env.example": "TOKEN=", ".git/config": "[remote]", ".git/HEAD": "ref"}
    other = write(tmp_path / "other", text)
    venv(tree / ".venv", SITE, str(other))
    env = found(find(tree))
    nothing = {mount.target for mount in env.mounts if mount.source == Path("/dev/null")}
    assert nothing == {other / ".env", other / ".env.example", other / ".git/config"}
    assert Mount(other, other) in env.mounts


# --- nothing of the repository runs while it is asked


def mark(place: Path) -> str:
    return f"open({str(place)!r}, 'w').close()\n"


def hostile(tmp_path: Path) -> Path:
    """Return a project that would run code on every way of starting its interpreter or pytest."""
    evil = mark(tmp_path / "ran")
    names = ("conftest.py", "pytest.py", "evil.py", "sitecustomize.py", "usercustomize.py", "json.py", "site.py")
    tree = write(
        tmp_path / "tree",
        {**dict.fromkeys(names, evil), "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-p evil'\n"},
    )
    site = venv(tree / ".venv", SITE, f"import os; {evil.strip()}")
    write(site, {"sitecustomize.py": evil, "__editable___x_finder.py": f"{evil}MAPPING = {{}}\n"})
    (site / "x.pth").write_text("import __editable___x_finder; __editable___x_finder.install()\n")
    script = tree / ".venv" / "bin" / "pytest"
    script.write_text(f"#!{tree / '.venv/bin/python'}\n{evil}")
    script.chmod(0o755)
    return tree


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize(
    "command",
    [
        None,
        ("python3", "-m", "pytest"),
        (".venv/bin/python", "-m", "pytest"),
        (".venv/bin/pytest",),
        ("pytest", "-x"),
    ],
)
def test_nothing_of_the_environment_or_of_the_project_runs_while_it_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...] | None
) -> None:
    tree = hostile(tmp_path)
    monkeypatch.chdir(tree)
    found(find(tree, command=command, search_path=f"{tree}/.venv/bin:/usr/bin:/bin"))
    assert not (tmp_path / "ran").exists()
    subprocess.run([tree / ".venv/bin/python", "-c", ""], check=True)  # the control: this is how it would run
    assert (tmp_path / "ran").exists()


EXEC = "#!/bin/sh\n'''exec' {} \"$0\" \"$@\"\n' '''"
BESIDE = '"$(dirname -- "$(realpath -- "$0")")"/'


@pytest.mark.parametrize(
    ("head", "known"),
    [
        ("#!{bin}/python", True),
        ("#!{bin}/python -sE", True),
        ("#!/usr/bin/env python", True),
        (EXEC.replace("{}", '"{bin}/python"'), True),
        (EXEC.replace("{}", "{bin}/python"), True),
        (EXEC.replace("{}", f"{BESIDE}'python'"), True),
        (EXEC.replace("{}", f"{BESIDE}python"), True),
        ("#!/bin/sh\nexec {bin}/python -m pytest", False),
        ("#!tools/python", False),
        ("", False),
        ("\x7fELF", False),
    ],
)
def test_the_interpreter_of_a_pytest_program_is_read_from_its_text(tmp_path: Path, head: str, known: bool) -> None:
    (tmp_path / "python").symlink_to(sys.executable)
    script = tmp_path / "pytest"
    script.write_text(head.replace("{bin}", str(tmp_path)) + "\nimport sys\n")
    assert interpreter_of(script, str(tmp_path)) == (tmp_path / "python" if known else None)


def test_a_pytest_whose_text_does_not_name_its_interpreter_is_told_so(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"x.py": ""})
    program = write(tmp_path / "bin", {"pytest": f"#!/bin/sh\ntouch {tmp_path}/ran\n"}) / "pytest"
    program.chmod(0o755)
    answer = find(tree, command=("pytest",), search_path=str(program.parent))
    assert isinstance(answer, Missing)
    assert "does not say with which interpreter" in answer.sentence
    assert not (tmp_path / "ran").exists()


@pytest.mark.broad
def test_an_environment_that_shows_what_is_installed_around_it(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"x.py": ""})
    venv(tree / ".venv")
    assert isinstance(find(tree), Missing)
    marker = tree / ".venv" / "pyvenv.cfg"
    marker.write_text(marker.read_text().replace("= false", "= true"))
    facts = ask(tree / ".venv/bin/python", {})
    assert facts is not None
    around = {entry for entry in facts.path if entry.endswith("-packages") and not Path(entry).is_relative_to(tree)}
    asked = "import site; print(*site.getsitepackages())"  # Debian's are called otherwise
    told = subprocess.run([Path(sys.base_prefix) / "bin" / "python3", "-c", asked], capture_output=True, check=True)
    assert around
    assert around <= set(told.stdout.decode().split())


@pytest.mark.broad
def test_the_script_of_a_version_manager_is_not_told_where_the_project_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = write(tmp_path / "tree", {".python-version": "3.11.7\n", "x.py": ""})
    monkeypatch.setenv("PYENV_DIR", str(project))
    text = f'echo "$PWD $PYENV_DIR" > {tmp_path}/said\nexec {sys.executable} "$@"\n'
    shims = write(tmp_path / "shims", {"python3": f"#!/bin/sh\n{text}"})
    (shims / "python3").chmod(0o755)
    found(find(project, search_path=f"{shims}:/usr/bin:/bin"))
    assert (tmp_path / "said").read_text() == "/ /\n"


def test_a_folder_src_is_imported_from_where_nothing_is_installed_from_it(tmp_path: Path) -> None:
    files = {
        "src/shop/__init__.py": "RATE = 3\n",
        "tests/test_it.py": "import shop\n\ndef test_it(): assert shop.RATE\n",
    }
    root = write(tmp_path / "tree", files)
    site = venv(root / ".venv", SITE)
    env = found(find(root))
    assert env.source_folders == ("src",)
    assert "imports from src/" in env.versions
    seen = measure(root, env=env)
    assert [str(record.outcome) for record in seen.records.values()] == ["passed"]
    (site / "shop").mkdir()
    assert found(find(root)).source_folders == (), "an installed package is what tests are meant to import"
    (site / "shop").rmdir()
    (site / "mine.pth").write_text(f"{root}/src\n")
    assert found(find(root)).source_folders == (), "an editable install does it"


@pytest.mark.broad
@pytest.mark.parametrize("name", ["src/__init__.py", "src/notes/readme.md", "other/shop/__init__.py"])
def test_a_folder_src_that_is_no_root_of_imports_is_left_alone(name: str, tmp_path: Path) -> None:
    root = write(tmp_path / "tree", {name: "x = 1\n"})
    venv(root / ".venv", SITE)
    assert found(find(root)).source_folders == ()
