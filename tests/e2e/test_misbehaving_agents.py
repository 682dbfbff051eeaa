"""Agents that write what is not theirs: each ends in its row of the matrix, and nothing of it arrives anywhere."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from e2e.misbehaviour import POISON, entry, last_rows, processes_with, scene, shell
from kit import AFTER_MAKE, GREET_DONE, HONEST, MAKE, PLAN, PLAN_ACCEPTED, PLAN_SIMPLE, TESTS, UNTIL_TESTS, judge

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

COMPLETE = {"result": "COMPLETE", "summary": "done"}
LEGAL_PART = f"cat > greet.py <<'END'\n{GREET_DONE}END\n"
FORBIDDEN: dict[str, tuple[str, dict[str, str]]] = {
    "writes outside the list": ("echo POISON > other.py", {"other.py": "outside-task"}),
    "edits a test": ("echo '# POISON' >> tests/test_greet.py", {"tests/test_greet.py": "test-file"}),
    "deletes a test": ("rm tests/test_other.py", {"tests/test_other.py": "test-file"}),
    "deselects tests": ("echo 'addopts = \"-k POISON\"' >> pyproject.toml", {"pyproject.toml": "control-file"}),
    "takes over the collection": ("echo '# POISON' > conftest.py", {"conftest.py": "control-file"}),
    "writes through a symlink": (
        "ln -s HOST/secret.txt link.txt; echo POISON > link.txt || :; ln -s HOST far; echo POISON > far/x || :",
        {"link.txt": "symlink", "far": "symlink"},
    ),
    "a hard link": ("ln .gitignore twin.txt", {"twin.txt": "hard-link", ".gitignore": "hard-link"}),
    "mode bits": ("chmod 755 keep.py", {"keep.py": "mode-change"}),
    "a repository below": (
        "git init -q --template= sub",
        {"sub/.git/HEAD": "git-alias", "sub/.git/config": "git-alias"},
    ),
    "a bare repository below": (
        "git init -q --bare --template= store",
        {"store/HEAD": "nested-repository", "store/config": "outside-task"},
    ),
    "git under another name": ("mkdir .GIT; echo POISON > .GIT/config", {".GIT/config": "git-alias"}),
    "differs by case only": ("echo POISON > Greet.py", {"Greet.py": "path-collision"}),
    "a FIFO": ("mkfifo pipe", {"pipe": "special-file"}),
    "a path 400 folders deep": (
        "(i=0; while [ $i -lt 400 ]; do mkdir d; cd d; i=$((i+1)); done; echo POISON > x)",
        {"/".join("d" * 128): "unreadable"},
    ),
    "300 MB of zeros": ("truncate -s 300M big.bin", {"big.bin": "unreadable"}),
    "hidden by ignore rules": (
        "echo POISON > hidden.log; mkdir lib; echo '*' > lib/.gitignore; echo POISON > lib/x.py",
        {"lib/.gitignore": "control-file", "lib/x.py": "outside-task"},  # what the project ignores is dropped
    ),
    "the tracker": ("echo POISON >> TODO/GAL-1.md", {"TODO/GAL-1.md": "tracker-file"}),
    "the run's own folder": ("mkdir .workflow; echo POISON > .workflow/x", {".workflow/x": "workflow-folder"}),
    "a name that writes to the terminal": (
        r"""echo POISON > "$(printf 'a\n\033]0;b')" """,
        {r"a\n\x1b]0;b": "path-characters"},
    ),
}
"""Situation -> what the agent does, and the gate's answer: path -> rule."""


def test_a_maker_that_breaks_every_rule_is_told_why_and_goes_on_from_its_legal_work(tmp_path: Path) -> None:
    it = scene(tmp_path)
    hook = "mkdir -p .git/hooks; printf '#!/bin/sh\necho POISON > HOST/x\n' > .git/hooks/pre-commit"
    hook += "; chmod 755 .git/hooks/pre-commit"
    tricks = "\n".join([LEGAL_PART, hook, *(do for do, _ in FORBIDDEN.values())]).replace("HOST", str(it.host))
    rules = {path: rule for _, paths in FORBIDDEN.values() for path, rule in paths.items()}
    seen = "grep -q 'a name is needed' greet.py; test -z \"$(git status --porcelain)\"; test ! -e other.py"
    first = entry("implement", run=shell(tricks), report=COMPLETE)
    again = entry("implement", run=shell(seen), report=COMPLETE)
    beside = {**TESTS, "files": {**TESTS["files"], "tests/data.log": "what a test reads\n"}}
    it.project.use_script([*UNTIL_TESTS, beside, first, again, *AFTER_MAKE])

    done = it.project.run()

    assert (done.get("outcome"), done["_code"]) == ("completed", 0), done
    red = (it.project.run_folder() / "evidence/red-006.md").read_text(encoding="utf-8")
    assert "left out, since the project ignores it: tests/data.log (.gitignore: *.log)" in red
    assert last_rows(it.project, "write-tests/RED")[:2] == ["any/VIOLATION", "implement/GREEN"]
    assert it.violations("007-implement-make") == rules
    assert it.project.git("diff", "--name-only", it.start, "HEAD", "--", ":!TODO").split() == [
        "greet.py",
        "tests/test_greet.py",
    ]
    it.assert_nothing_arrived()
    quarantine = it.project.run_folder() / "quarantine" / "007-implement-make"
    kept = {line["path"]: line for line in json.loads((quarantine / "violations.json").read_text())}
    assert (quarantine / kept["other.py"]["content"]).read_text() == f"{POISON}\n"
    assert "content" not in kept["big.bin"]
    assert it.reask("008-implement-make").startswith("These changes are not yours to make: ")
    assert it.reask("008-implement-make").endswith(f"; and {len(rules) - 5} more.")
    assert "\x1b" not in done["_stderr"]
    summary = (it.project.run_folder() / "summary.md").read_text(encoding="utf-8")
    assert "007-implement-make: `Greet.py` (path-collision)" in summary
    assert "007-implement-make: `hidden.log (.gitignore: *.log)`" in summary
    assert it.result("007-implement-make")["dropped"] == ["hidden.log (.gitignore: *.log)"]
    it.assert_explained("any/VIOLATION", "other.py", "outside-task", "the task names only: greet.py (modify)")


@pytest.mark.broad
def test_a_program_that_is_refused_and_then_hangs_gets_the_turns_that_the_limit_allows(tmp_path: Path) -> None:
    it = scene(tmp_path)
    source = f"""
target = pathlib.Path("greet.py")
if document["attempt"] == 1:
    target.write_text({GREET_DONE!r} + "HALF = 1\\n")
    pathlib.Path("tests/test_greet.py").unlink()
elif document["attempt"] == 2:
    assert "are not yours to make" in document["reask"] and "tests/test_greet.py" in document["reask"]
    assert "HALF" in target.read_text() and pathlib.Path("tests/test_greet.py").exists()
    pathlib.Path("tests/test_greet.py").write_text("def test_an_empty_name_is_refused():\\n    pass  # POISON\\n")
elif document["attempt"] == 3:
    assert document["reask"] is None and "diagnosis" in document["artifacts"]
    target.write_text({GREET_DONE!r})
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)
else:
    assert "did not finish" in document["reask"] and target.read_text() == {GREET_DONE!r}
report(result="COMPLETE", summary="attempt " + str(document["attempt"]))
"""
    diagnosis = judge("diagnose", diagnosis="production_logic", notes="leave the tests alone")
    it.use_program("make", source, [*UNTIL_TESTS, TESTS, diagnosis, *AFTER_MAKE], "timeout_s = 4")

    done = it.project.run("--set", "limits.unusable=4")

    assert (done.get("outcome"), done["_code"]) == ("completed", 0), done
    assert last_rows(it.project, "write-tests/RED")[:5] == [
        "any/VIOLATION",
        "any/VIOLATION",
        "diagnose/PRODUCTION_LOGIC",
        "any/TIMED_OUT",
        "implement/GREEN",
    ]
    decisions = [line["data"] for line in it.project.journal() if line["kind"] == "decision"]
    second = [line for line in decisions if line["row"] == "any/VIOLATION"][1]
    assert (second["action"]["do"], second["action"]["to"], second["exhausted"]) == ("Goto", "diagnose", ["reask"])
    assert it.violations("007-implement-make") == it.violations("008-implement-make")
    assert it.project.git("show", "HEAD:greet.py") == GREET_DONE.strip()
    it.assert_nothing_arrived()
    it.assert_explained("any/VIOLATION", "tests/test_greet.py", "test-file", "never changes tests")


@pytest.mark.broad
def test_a_program_in_the_box_reaches_nothing_of_the_host(tmp_path: Path) -> None:
    it = scene(tmp_path)
    source = f"""
import socket

host, root = pathlib.Path({str(it.host)!r}), pathlib.Path({str(it.project.root)!r})
reached = []


def attempt(name, act):
    try:
        act()
    except (OSError, IndexError):
        return
    reached.append(name)


attempt("secret", lambda: (host / "secret.txt").read_text())
attempt("marker", lambda: (host / "marker").write_text("POISON"))
attempt("hook", lambda: (root / ".git/hooks/pre-commit").write_text("#!/bin/sh\\ntouch POISON\\n"))
attempt("worktree", lambda: (root / "greet.py").write_text("POISON"))
attempt("journal", lambda: list(root.glob(".workflow/**/*"))[0].write_text("POISON"))
attempt("artifact", lambda: pathlib.Path(document["artifacts"]["task"]).write_text("POISON"))
attempt("document", lambda: pathlib.Path(os.environ["REDFIRST_DISPATCH"]).write_text("POISON"))
attempt("kernel", lambda: pathlib.Path("/proc/sys/kernel/hostname").write_text("POISON"))
attempt("network", lambda: socket.create_connection(("192.0.2.1", 80), 0.2))
pathlib.Path(".git/hooks").mkdir(exist_ok=True)
pathlib.Path(".git/hooks/pre-commit").write_text("#!/bin/sh\\necho POISON > " + str(host / "marker") + "\\n")
beside = pathlib.Path(os.environ["REDFIRST_REPORT"]).parent
for name in (b".git/config", b"\\xff\\xfe", b"deep/.GIT/x"):
    path = os.path.join(os.fsencode(beside), name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "w").write("POISON")
(beside / "report-too").symlink_to(host / "secret.txt")
os.truncate(os.open(beside / "flood", os.O_CREAT | os.O_WRONLY), 1_900_000_000)
late = "import time; time.sleep(900); open('greet.py', 'a').write('POISON')  # " + {it.daemon!r}
subprocess.Popen([sys.executable, "-c", late], start_new_session=True, env={{}})
pathlib.Path("greet.py").write_text({GREET_DONE!r})
report(result="COMPLETE", summary="reached: " + ", ".join(reached))
"""
    it.use_program("make", source, [*UNTIL_TESTS, TESTS, *AFTER_MAKE])

    done = it.project.run()

    assert (done.get("outcome"), done["_code"]) == ("completed", 0), done
    assert last_rows(it.project, "write-tests/RED")[0] == "implement/GREEN"
    assert it.result("007-implement-make")["report"]["summary"] == "reached: "
    it.assert_nothing_arrived()
    assert processes_with(it.daemon) == []
    kept = it.project.files_at(it.project.git("for-each-ref", "--format=%(objectname)", "refs/redfirst/runs"))
    assert "run/dispatches/007-implement-make/report.raw" in kept
    assert [name for name in kept if "flood" in name or "/out/" in name] == []
    assert not (it.project.run_folder() / "dispatches" / "007-implement-make" / "exchange" / "out").exists()


@pytest.mark.broad
def test_without_a_box_the_gate_still_judges_and_a_write_into_the_main_checkout_is_not_published(
    tmp_path: Path,
) -> None:
    it = scene(tmp_path)
    checked = entry("review-plan", "check", run=shell("echo POISON > note.txt"), report=PLAN_ACCEPTED["report"])
    meddled = "echo '# POISON' >> greet.py; echo '# POISON' > tests/conftest.py"
    advised = entry("review-plan", "simplify", run=shell("rm keep.py"), report=PLAN_SIMPLE["report"])
    tested = {**TESTS, "run": shell(meddled)}
    daemon = f"setsid sh -c 'sleep 900; echo {it.daemon}' > /dev/null 2>&1 &"
    made = {**MAKE, "run": shell(f"echo '# POISON' >> {it.project.root}/greet.py; {daemon}")}
    again = entry("write-tests", run=shell("test ! -e tests/conftest.py; grep -q ValueError tests/test_greet.py"))
    again["report"] = TESTS["report"]
    stolen = entry("review-result", "check", run=shell(f'ln -s {it.host}/secret.txt "$REDFIRST_REPORT"'))
    script = [checked, advised, advised, tested, again, made, stolen, *HONEST]
    it.project.use_script(script, 'sandbox = "none"')

    parked = it.project.run()

    assert (parked["outcome"], parked["reason"], parked["_code"]) == ("parked", "worktree_changed", 4), parked[
        "_stderr"
    ]
    assert it.project.rows()[3:7] == [*3 * ["any/VIOLATION"], "review-plan/ACCEPTABLE"]
    decisions = [line["data"] for line in it.project.journal() if line["kind"] == "decision"]
    assert [line["action"]["do"] for line in decisions[3:6]] == ["Again", "Again", "LeaveOut"]
    assert it.violations("002-review-plan-check") == {"note.txt": "read-only-role"}
    assert last_rows(it.project, "review-split/ACCEPTABLE") == [
        "any/VIOLATION",
        "write-tests/RED",
        "implement/GREEN",
        "any/MALFORMED",
        "final-review/ACCEPTABLE",
        "publish/WORKTREE_CHANGED",
    ]
    tests = next(line["data"]["dispatch"] for line in it.project.journal() if line["data"].get("role") == "test")
    assert it.violations(tests) == {"greet.py": "outside-task", "tests/conftest.py": "control-file"}
    assert processes_with(it.daemon) == []
    assert it.project.git("rev-parse", "HEAD") == it.start
    assert it.project.git("log", "--all", "--format=%H", "-G", POISON) == ""
    assert "greet.py" in parked["note"]
    it.assert_explained("publish/WORKTREE_CHANGED", "greet.py")

    it.project.git("checkout", "--", "greet.py")
    resumed = it.project.document("resume", "GAL-1")
    assert resumed["_code"] == 0, resumed
    it.assert_nothing_arrived()


@pytest.mark.broad
def test_roles_that_only_read_cannot_write_in_the_box_and_are_parked_when_they_are_of_no_use(tmp_path: Path) -> None:
    it = scene(tmp_path)
    source = """
try:
    pathlib.Path("greet.py").write_text("POISON")
except OSError as error:
    print("could not write:", error.strerror)
print("I think that this plan is ACCEPTABLE.")
"""
    it.use_program("check", source, [PLAN, PLAN_SIMPLE])

    parked = it.project.run()

    assert (parked.get("outcome"), parked.get("reason"), parked["_code"]) == ("parked", "agent_unusable", 4), parked
    assert it.project.rows()[2:] == ["plan/DRAFTED", "any/MALFORMED", "any/MALFORMED"]
    log = (it.project.run_folder() / "dispatches" / "002-review-plan-check" / "stdout.log").read_text()
    assert "could not write: Read-only file system" in log
    assert it.reask("004-review-plan-check").startswith("There was no report")
    assert it.project.git("rev-parse", "HEAD") == it.start
    it.assert_explained("any/MALFORMED", "There was no report", "agent_unusable")

    it.project.use_script([PLAN, PLAN_SIMPLE, *HONEST])  # another agent for @check; the run goes on where it stood
    resumed = it.project.document("resume", "GAL-1")
    assert resumed["_code"] == 0, resumed
    it.assert_nothing_arrived()


@pytest.mark.broad
def test_the_same_bytes_refused_the_same_way_park_the_run_with_the_refusal_and_what_to_do(tmp_path: Path) -> None:
    it = scene(tmp_path)
    grasping = entry("implement", run=shell(f"{LEGAL_PART}echo POISON > other.py"), report=COMPLETE)
    it.project.use_script([*UNTIL_TESTS, TESTS, grasping, grasping, *HONEST])

    parked = it.project.run()

    assert (parked.get("outcome"), parked.get("reason"), parked["_code"]) == ("parked", "agent_unusable", 4), parked
    assert last_rows(it.project, "write-tests/RED") == ["any/VIOLATION", "any/VIOLATION"]
    note = str(parked["note"])
    assert "@make handed in the same again, which was refused the same way" in note
    assert "other.py" in note
    assert "What you can do: name in the issue the files that may change, or ask another agent" in note
    assert "REDFIRST_REPORT" not in note
    assert note.split(": ", maxsplit=1)[0] in parked["_stderr"]
    assert not (it.project.root / "other.py").exists()
    assert it.project.git("rev-parse", "HEAD") == it.start
