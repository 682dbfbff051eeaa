"""The user commits while a run is at work: the result is published on top where it is measured to hold, else parked."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from crashes import KILLED, die_at, problems, spawn
from e2e.shapes import SUM_TESTS, SUMS, TRACKER, answers, sums_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project

pytestmark = pytest.mark.slow

FILES = {
    **SUMS,
    "greet.sum": "# 1\n# 2\n# 3\ngreet n = n\n",
    "other.sum": "other n = n\n",
    "docs/notes.txt": "notes\n",
}
TESTS = SUM_TESTS
CODE = {"greet.sum": "# 1\n# 2\n# 3\ngreet n = n * 2\n"}
SUBJECTS = ["fix: reject empty names", "chore(todo): close GAL-1"]


def parked(tmp_path: Path, code: dict[str, str] | None = None, flags: tuple[str, ...] = ()) -> Project:
    """Return a project whose run has everything and waits at the gate before publication."""
    project = sums_project(tmp_path, answers(FILES, TESTS, code or CODE), FILES)
    document = project.run("--approve", "commit", *flags)
    assert document.get("reason") == "approval", document
    return project


def commit(project: Project, files: dict[str, str], *paths: str) -> str:
    """Commit these files as the user does, while others of the worktree stay as they are; return the commit."""
    project.write(files)
    project.git("add", "--", *files, *paths)
    project.git("commit", "--quiet", "--message", "mine", "--only", "--", *files, *paths)
    return project.git("rev-parse", "work")


def refused(project: Project, *argv: str) -> dict[str, Any]:
    """Return the document of a publication that is refused since the branch moved, and that changes nothing."""
    before = project.git("rev-parse", "work"), project.git("status", "--porcelain")
    document = project.document(*argv)
    assert (document.get("reason"), document["_code"]) == ("branch_moved", 4), document
    assert (project.git("rev-parse", "work"), project.git("status", "--porcelain")) == before
    return document


def check_on_top(project: Project, document: dict[str, Any], mine: str) -> None:
    """Assert that the run's commits stand on the user's, and that `verify` says the same of them."""
    assert (document.get("outcome"), document["_code"]) == ("completed", 0), document
    subjects = project.git("log", "--reverse", "--format=%s", f"{mine}..work").splitlines()
    assert subjects == SUBJECTS
    assert document["commits"] == project.git("rev-list", "--reverse", f"{mine}..work").splitlines()
    assert project.git("status", "--porcelain") == ""
    assert "status: Done" in (project.root / "TODO" / "GAL-1.md").read_text(encoding="utf-8")
    checked = project.document("verify", f"{mine}..work")
    assert [each["status"] for each in checked["commits"]] == ["verified", "nothing_claimed"], checked
    assert problems(project) == []


@pytest.mark.broad
def test_commits_elsewhere_are_in_nobodys_way_whatever_became_of_the_tracker(tmp_path: Path) -> None:
    project = parked(tmp_path)
    new = {"TODO/GAL-2.md": TRACKER["TODO/GAL-1.md"].replace("GAL-1", "GAL-2")}
    commit(project, {"docs/more.txt": "more\n", **new})
    project.git("mv", "docs/notes.txt", "docs/renamed.txt")
    project.git("commit", "--quiet", "--all", "--message", "all that is here, In Progress too")
    mine = project.git("rev-parse", "work")
    document = project.document("approve", "GAL-1")
    check_on_top(project, document, mine)
    assert f"on top of {mine[:12]}" in document["note"]
    assert project.git("show", "work:docs/renamed.txt") == "notes"


@pytest.mark.broad
def test_what_meets_is_named_and_merged_only_when_a_person_says_so(tmp_path: Path) -> None:
    project = parked(tmp_path)
    mine = commit(project, {"greet.sum": FILES["greet.sum"].replace("# 1", "# mine")})
    document = refused(project, "approve", "GAL-1")
    note = document["note"]
    assert f"greet.sum was changed by {mine[:12]} (mine) and by task 1" in note
    assert "redfirst resume run-GAL-1 --onto work" in note
    actions = document["safe_next_actions"]
    assert actions[0] == "redfirst resume run-GAL-1 --onto work", "a plain resume would park again"
    assert "redfirst resume run-GAL-1" not in actions
    ahead = commit(project, {"docs/notes.txt": "ahead of the branch\n"})
    project.git("branch", "ahead")
    project.git("reset", "--quiet", "--keep", mine)
    wrong = project.document("resume", "GAL-1", "--onto", "main")
    assert (wrong["_code"], wrong["error"]["kind"]) == (2, "branch_moved"), wrong
    assert die_at(project, "before git read-tree -m", 1, "resume", "GAL-1", "--onto", "ahead") == KILLED
    project.write({"docs/notes.txt": "ahead of"})  # as a git that is killed leaves it
    document = project.document("resume", "GAL-1")
    check_on_top(project, document, ahead)
    assert project.git("show", "work:greet.sum") == CODE["greet.sum"].replace("# 1", "# mine").strip()


@pytest.mark.broad
def test_paths_that_differ_in_case_alone_are_not_merged_where_they_are_one_file(tmp_path: Path) -> None:
    project = parked(tmp_path)
    commit(project, {"Greet.sum": "# another file, where case counts\n"})
    project.git("config", "core.ignorecase", "true")
    assert "--onto" not in refused(project, "approve", "GAL-1")["note"]
    document = project.document("resume", "GAL-1", "--onto", "work")
    assert (document["_code"], document["error"]["kind"]) == (2, "branch_moved"), document
    assert "greet.sum" in document["error"]["message"]


@pytest.mark.broad
def test_where_both_change_the_same_lines_no_recipe_is_printed(tmp_path: Path) -> None:
    project = parked(tmp_path)
    commit(project, {"greet.sum": FILES["greet.sum"].replace("= n", "= n + 0")})
    note = refused(project, "approve", "GAL-1")["note"]
    assert "greet.sum" in note
    assert "would stop: conflicts in greet.sum" in note
    assert "--onto" not in note
    again = note.partition("to go by: ")[2].split(", then ")
    assert again == ["redfirst abandon run-GAL-1", "redfirst run GAL-1 --previous run-GAL-1"]
    before = len(project.journal())
    document = project.document("resume", "GAL-1", "--onto", "HEAD")
    assert (document["_code"], document["error"]["kind"]) == (2, "branch_moved"), document
    assert "greet.sum" in document["error"]["message"]
    assert document["error"]["safe_next_actions"][0] == "redfirst diff run-GAL-1"
    assert "+greet n = n * 2" in project.redfirst("diff", "run-GAL-1").stdout
    assert len(project.journal()) == before
    changed = {"greet.sum": FILES["greet.sum"].replace("= n", "= n + 0")}
    project.use_script(answers(FILES | changed, TESTS, CODE), '[agents.simplify]\nbackend = "off"\n')
    for step in again:
        assert project.redfirst(*step.split()[1:]).returncode == 0, step
    done = project.document("show", "run-GAL-1@2")
    assert (done["outcome"], project.git("show", "work:greet.sum")) == ("completed", CODE["greet.sum"].strip())
    given = (project.run_folder("run-GAL-1@2") / "previous.patch").read_text(encoding="utf-8")
    assert "+greet n = n * 2" in given


@pytest.mark.broad
def test_commits_that_a_person_put_there_with_conflicts_resolved_are_seen_to_be_the_result(tmp_path: Path) -> None:
    project = parked(tmp_path)
    commit(project, {"greet.sum": FILES["greet.sum"].replace("= n", "= n + 0")})
    note = refused(project, "approve", "GAL-1")["note"]
    pick = note.partition("git cherry-pick ")[2].partition(" would stop")[0]
    project.git("checkout", "--quiet", "TODO")  # In Progress, as a person puts it away
    argv = ["git", "cherry-pick", pick]
    done = subprocess.run(argv, cwd=project.root, env=project.environment(), capture_output=True, check=False)
    assert done.returncode == 1, done
    project.write(CODE)
    project.git("add", "--", "greet.sum")
    project.git("-c", "core.editor=true", "cherry-pick", "--continue")
    document = project.document("resume", "GAL-1")
    assert (document["reason"], document["_code"]) == ("branch_moved", 4)
    assert "work has the commits of run-GAL-1, as you put them there" in document["note"]
    assert "nothing is left to do: redfirst abandon run-GAL-1" in document["note"]
    abandoned = project.document("abandon", "GAL-1")
    actions = abandoned["safe_next_actions"]
    assert "redfirst run GAL-1" not in actions, "the issue is Done"
    (log,) = (action for action in actions if action.startswith("git log --stat"))
    assert "Run-Id: run-GAL-1" in project.git(*log.split()[1:])
    assert project.git("status", "--porcelain") == ""


def test_a_test_that_is_not_red_any_more_parks_the_run_with_a_recipe_that_works(tmp_path: Path) -> None:
    code = {"greet.sum": FILES["greet.sum"], "other.sum": "other n = n\ngreet n = n * 2\n"}
    project = parked(tmp_path, code)
    project.write({"zzz.sum": "greet n = n * 2\n"})  # the last file wins: the behaviour is there already
    project.git("add", "zzz.sum")
    project.git("commit", "--quiet", "--all", "--message", "mine, with In Progress")
    note = refused(project, "approve", "GAL-1")["note"]
    assert "task 1: greet.check::two: was ASSERTION_MISMATCH over the code before, and now passes" in note
    recipe = note.partition("it fits: ")[2].split(", then ")
    assert [step.split()[1] for step in recipe] == ["abandon", "cherry-pick", "issue"], note
    for step in recipe:
        program, *words = step.split()
        if program == "git":
            project.git(*words)
        else:
            assert project.redfirst(*words).returncode == 0, step
    assert project.git("log", "--format=%s", "-2", "work").splitlines() == [SUBJECTS[0], "mine, with In Progress"]
    assert set(project.git("diff", "--name-only", "HEAD").splitlines()) <= set(TRACKER)
    assert "status: Done" in (project.root / "TODO" / "GAL-1.md").read_text(encoding="utf-8")


@pytest.mark.broad
def test_what_a_person_takes_over_by_hand_stays_theirs_when_the_run_is_given_up(tmp_path: Path) -> None:
    code = {"greet.sum": FILES["greet.sum"], "other.sum": "other n = n\ngreet n = n * 2\n"}
    project = parked(tmp_path, code)
    commit(project, {"zzz.sum": "greet n = n * 2\n"})
    note = refused(project, "approve", "GAL-1")["note"]
    result = note.partition("..")[2].partition(",")[0]
    project.git("checkout", result, "--", "greet.check", "other.sum")
    assert project.redfirst("abandon", "GAL-1").returncode == 0
    assert project.git("status", "--porcelain").split("\n") == ["M  greet.check", "M  other.sum"]


@pytest.mark.broad
def test_what_the_users_commit_breaks_for_the_result_is_found(tmp_path: Path) -> None:
    project = parked(tmp_path)
    commit(project, {"zzz.sum": "greet n = n\n"})
    note = refused(project, "approve", "GAL-1")["note"]
    assert "task 1: greet.check::two: does not pass" in note


@pytest.mark.broad
def test_a_branch_without_the_start_is_left_alone(tmp_path: Path) -> None:
    project = parked(tmp_path)
    project.write({"docs/notes.txt": "amended\n"})
    project.git("commit", "--quiet", "--amend", "--only", "--message", "amended", "--", "docs/notes.txt")
    note = refused(project, "approve", "GAL-1")["note"]
    assert "no longer holds" in note
    assert "it fits: redfirst abandon run-GAL-1, then git cherry-pick" in note
    project.git("switch", "--quiet", "--create", "elsewhere")
    assert "git switch work" in refused(project, "resume", "GAL-1")["note"]


@pytest.mark.broad
def test_death_at_each_sub_step_on_a_branch_that_keeps_moving(tmp_path: Path) -> None:
    project = parked(tmp_path)
    instants = (
        "after git commit-tree",
        "after journal publish_intended",
        "after replace GAL-1.md",
        "before git read-tree -m",
        "after git read-tree -m",
        "before git read-tree -m",
        "after git read-tree -m",
        "after git update-ref .* refs/heads/work",
        "after journal published",
    )
    mine = ""
    for number, instant in enumerate(instants):
        if number < len(instants) - 1:
            mine = commit(project, {f"docs/{number}.txt": "mine\n"})
        else:
            mine = project.git("rev-parse", "work~2")
        command = "approve" if number == 0 else "resume"
        assert die_at(project, instant, 1, command, "GAL-1") == KILLED, instant
        assert project.git("log", "--format=%s", "-1", "work") in {"mine", SUBJECTS[-1]}
    check_on_top(project, project.document("resume", "GAL-1"), mine)
    assert (project.root / "docs" / "5.txt").read_text(encoding="utf-8") == "mine\n"


GPG = """#!/bin/sh
cat > /dev/null
number=$(($(cat {home}/signed || echo 0) + 1))
echo $number > {home}/signed
if [ $number = 1 ] || [ $number = 3 ]; then  # the first commit of each of two rounds
    cd {root}
    echo mine > docs/$number.txt
    git add docs/$number.txt
    git -c commit.gpgSign=false commit --quiet --message mine -- docs/$number.txt
fi >&2
printf '\\n[GNUPG:] SIG_CREATED \\n' >&2
printf '%s\\n' '-----BEGIN PGP SIGNATURE-----' '' 'x' '-----END PGP SIGNATURE-----'
"""
"""Signs; and meanwhile the user commits, twice."""


@pytest.mark.broad
def test_a_branch_that_moves_while_the_commits_are_signed_is_looked_at_again(tmp_path: Path) -> None:
    project = parked(tmp_path)
    program = project.home / "gpg"
    program.write_text(GPG.format(root=project.root, home=project.home), encoding="utf-8")
    program.chmod(0o755)
    project.git("config", "gpg.program", str(program))
    project.git("config", "commit.gpgsign", "true")
    document = project.document("approve", "GAL-1")
    assert project.rows().count("publish/TIP_MOVED") == 2
    check_on_top(project, document, project.git("rev-parse", "work~2"))


@pytest.mark.broad
def test_uncommitted_changes_where_the_run_writes_refuse_to_go_on_before_anything_is_paid(tmp_path: Path) -> None:
    project = sums_project(tmp_path, answers(FILES, TESTS, CODE), FILES)
    assert project.run("--approve", "split").get("reason") == "approval"
    project.write({"greet.sum": "greet n = n + 0\n", "docs/notes.txt": "edited\n"})
    before = project.journal()
    document = project.document("approve", "GAL-1")
    assert (document["_code"], document["error"]["kind"]) == (2, "dirty_tree"), document
    assert document["error"]["details"]["paths"] == ["greet.sum"]
    assert project.journal() == before
    stash = document["error"]["message"].partition("first: ")[2].split()
    project.git(*stash[1:])
    mine = commit(project, {"docs/more.txt": "more\n"})
    document = project.document("approve", "GAL-1")
    assert (document.get("outcome"), document["_code"]) == ("completed", 0), document
    assert "not committed: docs/notes.txt" in document["_stderr"]
    assert f"work is at {mine[:12]} now; the result is put on top of it" in document["_stderr"]
    assert project.git("status", "--porcelain") == "M docs/notes.txt"


@pytest.mark.broad
def test_ctrl_c_while_commits_for_a_person_are_signed_stops_the_run(tmp_path: Path) -> None:
    project = parked(tmp_path)
    commit(project, {"greet.sum": FILES["greet.sum"].replace("= n", "= n + 0")})
    program = project.home / "gpg"
    program.write_text("#!/bin/sh\nkill -INT 0\nexit 1\n", encoding="utf-8")  # the terminal signals the whole group
    program.chmod(0o755)
    project.git("config", "gpg.program", str(program))
    project.git("config", "commit.gpgsign", "true")
    with spawn(project, "approve", "GAL-1", "--json") as driver:
        out, err = driver.communicate(timeout=120)
    assert (driver.returncode, json.loads(out)["reason"]) == (130, "interrupted"), err
    project.git("config", "commit.gpgsign", "false")
    assert "would stop: conflicts in greet.sum" in refused(project, "resume", "GAL-1")["note"]


@pytest.mark.broad
def test_explain_of_a_run_in_another_worktree_has_commands_that_work_where_it_is_typed(tmp_path: Path) -> None:
    project = parked(tmp_path, flags=("--worktree",))
    there = tmp_path / "project-gal-1"
    (there / "other.sum").write_text("other n = n + 0\n", encoding="utf-8")
    project.git("commit", "--quiet", "--amend", "--only", "--message", "amended", "--", "other.sum", cwd=there)
    assert "then git cherry-pick" in project.document("approve", "GAL-1")["note"].replace(f"git -C {there} ", "git ")
    (decision,) = project.document("explain", "GAL-1", "--last")["decisions"]
    assert f"then git -C {there} cherry-pick" in decision["note"]
    assert f"git -C {there} cherry-pick" in " ".join(project.redfirst("explain", "GAL-1", "--last").stdout.split())
