from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.process import Mount
from pipeline.programs import Program, locate


def _script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def _shows(program: Program, path: Path) -> bool:
    return any(path.is_relative_to(mount.target) for mount in program.mounts)


def test_a_program_that_does_not_exist_is_the_users_to_mend() -> None:
    with pytest.raises(UserError) as caught:
        locate("no-such-program-anywhere")
    assert caught.value.reason is Reason.CONFIG
    assert "no-such-program-anywhere" in caught.value.message


def test_a_file_that_may_not_be_executed_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    with pytest.raises(UserError):
        locate(str(tmp_path / "tool"))


def test_a_virtual_environment_brings_itself_and_its_base(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    program = locate(str(python))
    assert program.path == python, "resolving the link would lose the environment"
    base = subprocess.run(
        [python, "-c", "import sys; print(sys.base_prefix)"], capture_output=True, check=True, text=True
    )
    assert _shows(program, tmp_path / "env" / "lib")
    assert base.stdout.strip().startswith("/usr") or _shows(program, Path(base.stdout.strip()))


def test_an_env_script_is_started_with_the_hosts_interpreter(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=False)
    script = _script(tmp_path / "tool", "#!/usr/bin/env python\nprint('hello', __import__('sys').argv[1])\n")
    program = locate(str(script), str(tmp_path / "env" / "bin"))
    assert program.argv("x") == (str(tmp_path / "env" / "bin" / "python"), str(script), "x")
    assert Mount(script, script) in program.mounts
    assert subprocess.run(program.argv("you"), capture_output=True, check=True).stdout == b"hello you\n"


def test_a_shim_is_asked_for_the_interpreter_behind_it(tmp_path: Path) -> None:
    real = Path(sys.executable).resolve()
    shim = _script(tmp_path / "shims" / "python3", f'#!/bin/sh\nexec {real} "$@"\n')
    program = locate("python3", str(shim.parent))
    assert program.path == real
    assert not _shows(program, shim)


def test_a_shim_of_another_program_is_refused_with_advice(tmp_path: Path) -> None:
    shim = _script(tmp_path / "shims" / "node", "#!/bin/sh\n")
    with pytest.raises(UserError, match="absolute path"):
        locate("node", str(shim.parent))


def test_a_native_program_outside_the_system_is_mounted_with_its_links(tmp_path: Path) -> None:
    (tmp_path / "opt").mkdir()
    native = tmp_path / "opt" / "tool-1.0"
    native.write_bytes(Path("/bin/true").resolve().read_bytes())
    native.chmod(0o755)
    (tmp_path / "tool").symlink_to(Path("opt") / "tool-1.0")
    program = locate(str(tmp_path / "tool"))
    assert Mount(native, tmp_path / "tool") in program.mounts
    assert Mount(native, native) in program.mounts


def test_an_interpreter_is_not_started_to_find_its_installation(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    python.unlink()
    python.write_bytes(Path("/bin/false").resolve().read_bytes())  # one that says nothing
    python.chmod(0o755)
    assert _shows(locate(str(python)), tmp_path / "env" / "lib")


def test_a_program_that_is_only_called_python_shows_no_folder_around_it(tmp_path: Path) -> None:
    tool = tmp_path / "config" / "bin" / "python"
    tool.parent.mkdir(parents=True)
    tool.write_bytes(Path("/bin/true").resolve().read_bytes())
    tool.chmod(0o755)
    (tmp_path / "config" / "pyvenv.cfg").write_text(f"home = {tmp_path}/secrets/bin\n")
    with pytest.raises(UserError, match="no installation"):
        locate(str(tool))


def test_of_an_environment_at_the_top_of_a_repository_the_rest_is_not_shown(tmp_path: Path) -> None:
    venv.create(tmp_path / "top", with_pip=False)
    (tmp_path / "top" / ".git").mkdir()
    (tmp_path / "top" / ".env").write_text("TOKEN=x")
    program = locate(str(tmp_path / "top" / "bin" / "python"))
    assert _shows(program, tmp_path / "top" / "lib")
    assert not _shows(program, tmp_path / "top" / ".env")


def test_a_folder_of_shims_counts_only_on_the_search_path(tmp_path: Path) -> None:
    shim = _script(tmp_path / "shims" / "python3", f"#!/bin/sh\ntouch {tmp_path}/started\n")
    with pytest.raises(UserError, match="absolute path"):
        locate(str(shim), "/usr/bin:/bin")
    assert not (tmp_path / "started").exists()


def test_a_shim_is_asked_in_the_root_where_no_file_chooses_a_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shim = _script(
        tmp_path / "shims" / "python3",
        f'#!/bin/sh\npwd > {tmp_path}/where\nexec {Path(sys.executable).resolve()} "$@"\n',
    )
    monkeypatch.chdir(tmp_path)
    locate("python3", str(shim.parent))
    assert (tmp_path / "where").read_text() == "/\n"
