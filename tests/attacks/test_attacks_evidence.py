"""Evidence that was forged by somebody who writes the trailers of a commit and the refs that are fetched.

They cannot change what is measured. So each forgery here begins with the evidence of an honest run, bends it, and makes
commit and ref fit each other again: the digest in the trailer is that of the bent evidence. The control of all of them
is the first test: the same tools, nothing bent, and `verify` says verified.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from typing import TYPE_CHECKING, Any, Final

import pytest
from cli.test_verify_cli import FETCH, Clone, why
from kit import GREET_DONE, HONEST, NEW_ID, TEST_GREET, TEST_GREET_NEW, make_project

from pipeline.judge.reports.decode import Malformed
from pipeline.judge.reports.taskfile import parse_task_md
from pipeline.testing.measure.task_evidence import TaskEvidence

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kit import Project

pytestmark = pytest.mark.slow

REF: Final = "refs/redfirst/runs/forged/run-GAL-1"
OLD_ID: Final = "tests/test_greet.py::test_greets_by_name"
EVIDENCE: Final = "evidence/task-1.json"
TASK_FILE: Final = "task-1.md"
LEAVE: Final = "tests_to_change:\n- {{id: '{id}', reason: so}}"
WEAK_OLD: Final = TEST_GREET_NEW.replace('assert greet("Ada") == "Hello, Ada!"', 'assert greet("Ada")')
WITHOUT_OLD: Final = TEST_GREET_NEW.replace(TEST_GREET.partition("\n\n\n")[2], "")
PASSING: Final = 'def test_passes():\n    assert "a".upper() == "A"\n'


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = make_project(tmp_path_factory.mktemp("forged"))
    project.use_script(HONEST, '[agents.simplify]\nbackend = "off"\n')
    assert project.run()["outcome"] == "completed"
    return project


@pytest.fixture
def forger(done: Project, tmp_path: Path) -> Forger:
    root = tmp_path / "clone"
    done.git("clone", "--quiet", "--branch", "work", str(done.root), str(root), cwd=tmp_path)
    clone = Clone(done, root)
    clone.git("config", "user.name", "Mallory")
    clone.git("config", "user.email", "mallory@example.org")
    clone.git("fetch", "--quiet", "origin", FETCH)
    return Forger(clone)


class Forger:
    """Somebody who takes an honest run and makes something else of it."""

    def __init__(self, clone: Clone) -> None:
        self.clone = clone
        self.ref = clone.git("for-each-ref", "--format=%(refname)", "refs/redfirst/runs")
        self.commit = clone.git("rev-parse", "HEAD~1")

    def put(self, files: dict[str, bytes], mode: str = "100644", named: str | None = None) -> None:
        """Make the one ref that is there hold these files of the run, or the object that is named in their place."""
        index = {"GIT_INDEX_FILE": str(self.clone.root / ".git" / "forged")}
        self._git(index, "read-tree", self.ref)
        for name, content in files.items():
            oid = named or self._git(index, "hash-object", "-w", "--stdin", stdin=content)
            self._git(index, "update-index", "--add", "--cacheinfo", f"{mode},{oid},run/{name}")
        tree = self._git(index, "write-tree")
        self.clone.git("update-ref", "-d", self.ref)
        self.clone.git("update-ref", REF, tree)
        self.ref = REF

    def _git(self, more: dict[str, str], *argv: str, stdin: bytes = b"") -> str:
        env = {**self.clone.project.environment(), **more}
        return (
            subprocess.run(["git", *argv], cwd=self.clone.root, env=env, input=stdin, capture_output=True, check=True)
            .stdout.decode()
            .strip()
        )

    def read(self, name: str) -> str:
        return self.clone.git("show", f"{self.ref}:run/{name}") + "\n"

    def forge(
        self,
        bend: Callable[[dict[str, Any]], object] = lambda _: None,
        *,
        files: dict[str, str] | None = None,
        task: Callable[[str], str] = lambda text: text,
        more: str = "",
        put: dict[str, bytes] | None = None,
    ) -> str:
        """Return the honest commit again with other evidence, files, task or trailers, all of which fit together."""
        evidence = json.loads(self.read(EVIDENCE))
        digests = [f"sha256:{TaskEvidence.model_validate(evidence).red_digest()}"]
        bend(evidence)
        digests.append(f"sha256:{TaskEvidence.model_validate(evidence).red_digest()}")
        old, new = self.read(TASK_FILE), task(self.read(TASK_FILE))
        hashes = [f"sha256:{hashlib.sha256(text.encode()).hexdigest()}" for text in (old, new)]
        message = self.clone.message(self.commit)
        assert digests[0] in message
        assert hashes[0] in message
        message = message.replace(digests[0], digests[1]).replace(hashes[0], hashes[1]) + f"\n{more}"
        self.put({EVIDENCE: json.dumps(evidence).encode(), TASK_FILE: new.encode(), **(put or {})})
        return self.clone.rewrite(self.commit, files or {}, message=message)


def notes(commit: dict[str, Any]) -> str:
    return "; ".join(commit["notes"])


def without_red(evidence: dict[str, Any]) -> None:
    evidence["ledger"] |= {"red": {}, "guards": {}}


def without_frozen(evidence: dict[str, Any]) -> None:
    evidence["ledger"]["frozen"] = {"regions": {}, "files": {}, "ids": [], "uncollected": [], "cases": {}}


def test_the_control_is_verified(forger: Forger) -> None:
    code, commit = forger.clone.check(forger.forge())
    assert (code, commit["status"], commit["evidence"]) == (0, "verified", REF), commit


@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.broad
def test_without_a_red_test_nothing_is_verified(forger: Forger, *, guarded: bool) -> None:
    def bend(evidence: dict[str, Any]) -> None:
        regions = {entry: red["region_sha256"] for entry, red in evidence["ledger"]["red"].items()}
        without_red(evidence)
        without_frozen(evidence)
        evidence["ledger"]["guards"] = {OLD_ID: next(iter(regions.values()))} if guarded else {}

    code, commit = forger.clone.check(forger.forge(bend))
    assert (code, commit["status"]) == (7, "refuted"), commit
    # tests that passed before may stand for themselves, where they are the ones that were judged
    assert ("is not the test that was judged" if guarded else "names no test that was RED") in why(commit)


def test_a_pass_is_no_red_whatever_it_is_called(forger: Forger) -> None:
    name = "tests/test_other.py::test_passes"

    def bend(evidence: dict[str, Any]) -> None:
        without_frozen(evidence)
        (entry,) = evidence["ledger"]["red"].values()
        evidence["ledger"]["red"] = {name: {**entry, "function": name, "cls": "GUARD"}}
        evidence["ledger"]["guards"] = {name: entry["region_sha256"]}

    code, commit = forger.clone.check(forger.forge(bend, files={"tests/test_other.py": PASSING}))
    assert (code, commit["status"]) == (7, "refuted"), commit
    assert "is said to have been RED and to have passed" in why(commit)


@pytest.mark.broad
def test_another_test_of_the_same_name_is_not_the_one_that_was_judged(forger: Forger) -> None:
    weak = TEST_GREET_NEW.replace("with pytest.raises(ValueError)", "with pytest.raises(Exception)")
    code, commit = forger.clone.check(forger.forge(without_frozen, files={"tests/test_greet.py": weak}))
    assert (code, commit["status"]) == (7, "refuted"), commit
    assert f"{NEW_ID} is not the test that was judged" in why(commit)


@pytest.mark.parametrize("tree", ["1234567890" * 4, "no-tree"])
@pytest.mark.broad
def test_a_tree_that_is_not_here_is_unchecked(forger: Forger, tree: str) -> None:
    def bend(evidence: dict[str, Any]) -> None:
        evidence["ledger"]["tree"] = tree

    code, commit = forger.clone.check(forger.forge(bend))
    assert (code, commit["status"]) == (2, "unchecked"), commit
    assert tree[:12] in commit["why"]


def test_a_tree_is_no_option(forger: Forger) -> None:
    victim = forger.clone.root.parent / "written"

    def bend(evidence: dict[str, Any]) -> None:
        evidence["ledger"]["tree"] = f"--output={victim}"

    code, commit = forger.clone.check(forger.forge(bend))
    assert (code, commit["status"]) == (2, "unchecked"), commit
    assert not victim.exists()


@pytest.mark.broad
def test_not_testable_is_a_word_of_its_own(forger: Forger) -> None:
    def bend(evidence: dict[str, Any]) -> None:
        evidence |= {"ledger": None, "not_testable": {"reason": "config-only"}}

    forged = forger.forge(bend)
    document = forger.clone.verify(forged)
    (commit,) = document["commits"]
    assert (document["status"], document["exit_code"], document["ok"]) == ("not_testable", 2, False), commit
    assert commit["status"] == "not_testable"
    assert f"{NEW_ID} is new" in notes(commit)
    said = forger.clone.project.redfirst("verify", forged, cwd=forger.clone.root).stdout
    assert "Not verified: nothing is lost, but a commit that claims evidence rests on no test: read it." in said
    assert "Verified" not in said


@pytest.mark.broad
def test_not_testable_breaks_and_changes_nothing_unseen(forger: Forger) -> None:
    def bend(evidence: dict[str, Any]) -> None:
        evidence |= {"ledger": None, "not_testable": {"reason": "config-only"}}

    code, commit = forger.clone.check(forger.forge(bend, files={"tests/test_greet.py": WEAK_OLD}))
    assert (code, commit["status"]) == (7, "refuted"), commit
    assert f"{OLD_ID} is an old test that this commit changes" in why(commit)


@pytest.mark.parametrize("leave", [False, True])
@pytest.mark.parametrize("owned", [False, True])
@pytest.mark.parametrize("text", [WEAK_OLD, WITHOUT_OLD], ids=["changed", "gone"])
@pytest.mark.broad
def test_each_old_test_that_changed_or_went_is_named(forger: Forger, text: str, *, owned: bool, leave: bool) -> None:
    def bend(evidence: dict[str, Any]) -> None:
        without_frozen(evidence)
        if owned:
            evidence["ledger"]["guards"] = {OLD_ID: "0" * 64}

    def task(old: str) -> str:
        assert "tests_to_change: []" in old
        return old.replace("tests_to_change: []", LEAVE.format(id=OLD_ID)) if leave else old

    code, commit = forger.clone.check(forger.forge(bend, files={"tests/test_greet.py": text}, task=task))
    assert OLD_ID in f"{why(commit)} {notes(commit)}", commit
    assert leave or code == 7, commit


@pytest.mark.broad
def test_what_serves_tests_is_named_when_it_changes(forger: Forger) -> None:
    """The tree that the tests were judged on is the forger's: nothing of the commit was changed since."""
    conftest = {"tests/conftest.py": "import pytest\n"}
    tree = forger.clone.git("rev-parse", f"{forger.forge(files=conftest)}^{{tree}}")

    def bend(evidence: dict[str, Any]) -> None:
        evidence["ledger"]["tree"] = tree

    code, commit = forger.clone.check(forger.forge(bend, files=conftest))
    assert (code, commit["status"]) == (0, "verified"), commit
    assert "tests/conftest.py" in notes(commit)


@pytest.mark.broad
def test_what_controls_the_tests_is_named_when_it_changes(forger: Forger) -> None:
    code, commit = forger.clone.check(forger.forge(files={"pytest.ini": "[pytest]\npythonpath = .\n"}))
    assert "pytest.ini" in f"{why(commit)} {notes(commit)}", (code, commit)


@pytest.mark.broad
def test_a_start_with_other_people_s_commits_after_it_is_no_start(forger: Forger) -> None:
    """Over the root of a history every test is RED."""
    root = forger.clone.git("rev-list", "--max-parents=0", "HEAD")
    forger.clone.git("switch", "--quiet", "--detach", f"{forger.commit}~1")
    forger.clone.git("commit", "--quiet", "--allow-empty", "--message", "somebody's")
    honest = forger.commit
    forger.clone.git("cherry-pick", honest)
    forger.commit = forger.clone.git("rev-parse", "HEAD")
    code, commit = forger.clone.check(forger.forge(more=f"Red-Base: {root}\n"))
    assert (code, commit["status"]) == (2, "unchecked"), commit
    assert "somebody's" in commit["why"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("run.json", b"[]"),
        ("run.json", b"[" * 100_000),
        (TASK_FILE, b"\xff\xfe"),
        (TASK_FILE, b"---\n" + b"[" * 100_000),
        (EVIDENCE, b"{}"),
        (EVIDENCE, b"[" * 100_000),
    ],
)
@pytest.mark.broad
def test_what_cannot_be_read_is_no_bug_of_ours(forger: Forger, name: str, content: bytes) -> None:
    code, commit = forger.clone.check(forger.forge(put={name: content}))
    assert commit["status"] in {"refuted", "unchecked"}, (code, commit)


@pytest.mark.broad
def test_a_blob_without_end_is_not_read(forger: Forger) -> None:
    code, commit = forger.clone.check(forger.forge(put={EVIDENCE: b" " * (80 * 1024 * 1024)}))
    assert (code, commit["status"]) == (2, "unchecked"), commit


@pytest.mark.parametrize("one", [True, False], ids=["one tree", "one object"])
@pytest.mark.broad
def test_evidence_that_many_refs_hold_is_parsed_once(forger: Forger, *, one: bool) -> None:
    """Refs cost whoever pushes them next to nothing; each would be parsed for seconds."""
    evidence = json.loads(forger.read(EVIDENCE))
    evidence["ledger"]["guards"] = {f"{number:x}": "" for number in range(200_000)}
    forger.put({EVIDENCE: json.dumps(evidence).encode()})
    trees = [forger.clone.git("rev-parse", REF)]
    for number in range(0 if one else 60):
        forger.put({"more": str(number).encode()})
        trees.append(forger.clone.git("rev-parse", REF))
    for number in range(90):
        forger.clone.git("update-ref", f"refs/redfirst/runs/a{number}/run-GAL-1", trees[number % len(trees)])
    begin = time.monotonic()
    code, commit = forger.clone.check(forger.commit)
    assert (code, commit["status"]) == (7, "refuted"), commit
    assert time.monotonic() - begin < 30, commit


@pytest.mark.parametrize(("refs", "size"), [(150, 100), (12, 9_000_000)], ids=["refs", "bytes"])
@pytest.mark.broad
def test_more_evidence_than_is_looked_into_is_said(forger: Forger, refs: int, size: int) -> None:
    for number in range(refs):
        forger.put({EVIDENCE: json.dumps({"number": number, "more": "x" * size}).encode()})
        forger.clone.git("update-ref", f"refs/redfirst/runs/a{number}/run-GAL-1", REF)
    code, commit = forger.clone.check(forger.commit)
    assert (code, commit["status"]) == (2, "unchecked"), commit
    assert "more evidence of run-GAL-1 here than is looked into" in commit["why"]


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize("text", ["- a\n", "k: {a: b}\n", "[a],\n"])
def test_a_task_file_takes_long_for_no_text(text: str) -> None:
    head = f"---\nfiles: [\n{text * (900_000 // len(text))}]\n---\n" if "," in text else f"---\n{text * 200_000}---\n"
    begin = time.process_time()
    assert isinstance(parse_task_md(head[:1_000_000]), Malformed)
    assert time.process_time() - begin < 20


@pytest.mark.parametrize("mode", ["120000", "160000"], ids=["link", "submodule"])
@pytest.mark.parametrize("name", [EVIDENCE, TASK_FILE])
@pytest.mark.broad(but_first=1)
def test_a_link_or_a_submodule_is_no_evidence(forger: Forger, mode: str, name: str) -> None:
    forger.put({name: b"/etc/passwd"}, mode, forger.commit if mode == "160000" else None)
    code, commit = forger.clone.check(forger.commit)
    assert commit["status"] in {"refuted", "unchecked"}, (code, commit)


@pytest.mark.broad
def test_what_replaces_an_object_is_not_what_was_committed(forger: Forger) -> None:
    """Refs that replace objects come along with a mirror; what is asked about is the commit."""
    honest = forger.clone.git("rev-parse", f"{forger.commit}^{{tree}}")
    forged = forger.forge(files={"greet.py": GREET_DONE.replace("ValueError", "KeyError")})
    forger.clone.git("replace", forger.clone.git("rev-parse", f"{forged}^{{tree}}"), honest)
    code, commit = forger.clone.check(forged)
    assert (code, commit["status"]) == (7, "refuted"), commit
