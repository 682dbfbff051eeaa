"""Situation -> the commands that are advised in it -> what each does there: what the tests of `next:` lines hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from next_lines import READS, Promise

PLAN: Final = "parked/approval"
ABANDONED: Final = Promise(0, "cancelled/abandoned")
COMPLETED: Final = Promise(0, "completed/done")
PARKED: Final = Promise(4, PLAN)
CLEAN: Final = '$ test -z "$(git status --porcelain)"'
CLEAN_SOURCES: Final = "$ git diff --quiet HEAD -- greet.sum"
ON_WORK: Final = '$ test "$(git branch --show-current)" = work'
ON_OWN: Final = '$ test "$(git branch --show-current)" = gal-1'
ON_MINE: Final = '$ test "$(git branch --show-current)" = mine'
REMOVED: Final = Promise(0, "$ test ! -e ../project-gal-1 && ! git rev-parse --quiet --verify gal-1-reject-empty-names")
STAYS: Final = "   # its record stays in refs/redfirst/runs/WORKTREE/run-GAL-1"
TWO_COMMITS: Final = '$ test "$(git rev-list --count main..HEAD)" = 2'
LANDED: Final = "$ git merge-base --is-ancestor gal-1-reject-empty-names main"
NOT_LANDED: Final = "$ ! git merge-base --is-ancestor gal-1-reject-empty-names main"
LAND: Final = "redfirst land run-GAL-1   # onto main, measured there"
FORWARD: Final = "   # moves main forward to it"
FETCH: Final = f"git fetch . work:main{FORWARD}"
ON_MAIN: Final = Promise(0, "$ git merge-base --is-ancestor work main")
LAND_ALONE: Final = Promise(0, "$ git log --format=%B main | grep -q Rebased-From")
SENT_BACK: Final = Promise(2, "$ test -f .workflow/run-GAL-1/feedback-1.md")
"""Its next dispatch is one that the script has no answer for."""
ENDED: Final = "$ test -d .workflow/run-GAL-1@2"
SHOW, DIFF = "redfirst show run-GAL-1", "redfirst diff run-GAL-1"
APPROVE, RESUME, ABANDON = "redfirst approve run-GAL-1", "redfirst resume run-GAL-1", "redfirst abandon run-GAL-1"
REJECT = 'redfirst reject run-GAL-1 --feedback "..."'
WHY = "redfirst explain run-GAL-1 --last"
AGAIN = "redfirst run GAL-1"


@dataclass(frozen=True)
class Advice:
    """The commands of a situation."""

    lines: dict[str, Promise]
    stands: str | None = None
    """`outcome/reason` of the run, where it is a run's."""


TABLE: Final[dict[str, Advice]] = {
    "gate plan": Advice(
        {SHOW: READS, DIFF: READS, APPROVE: COMPLETED, REJECT: PARKED, ABANDON: ABANDONED}, "parked/approval"
    ),
    "answers at gate plan": Advice({APPROVE: COMPLETED, REJECT: PARKED, ABANDON: ABANDONED}),
    "answers at gate commit": Advice(
        {
            DIFF: READS,
            APPROVE: COMPLETED,
            REJECT: SENT_BACK,
            'redfirst reject run-GAL-1 --to split --feedback "..."': SENT_BACK,
            'redfirst reject run-GAL-1 --to plan --feedback "..."': SENT_BACK,
            ABANDON: ABANDONED,
        },
    ),
    "resume at a gate": Advice({APPROVE: COMPLETED, REJECT: PARKED}),
    "a draft is removed": Advice({REJECT: PARKED, APPROVE: COMPLETED}),
    "a draft that cannot be used": Advice({APPROVE: Promise(2)}),
    "in the way": Advice({"git status": READS, SHOW: READS}),
    "what puts it away": Advice({"git stash push --include-untracked -- greet.sum": Promise(0, CLEAN_SOURCES)}),
    "another gate is approved": Advice({SHOW: READS}),
    "gate plan of a linked worktree": Advice(
        {SHOW: READS, DIFF: READS, APPROVE: COMPLETED, REJECT: PARKED, ABANDON: ABANDONED},
    ),
    "a gate that waits in a linked worktree": Advice({APPROVE: COMPLETED}),
    "a gate that waits there, rejected": Advice({"redfirst reject run-GAL-1 --feedback no": PARKED}),
    "completed": Advice(
        {"git log --stat COMMIT..work": READS, DIFF: READS, LAND: ON_MAIN, FETCH: ON_MAIN},
        "completed/done",
    ),
    "completed on an odd branch": Advice(
        {
            "git log --stat COMMIT..'a;$b&c'": READS,
            DIFF: READS,
            LAND: Promise(0, "$ git merge-base --is-ancestor HEAD main"),
            f"git fetch . 'a;$b&c:main'{FORWARD}": Promise(0, "$ git merge-base --is-ancestor HEAD main"),
        },
    ),
    "landing where the base has moved and is checked out nowhere": Advice(
        {LAND: LAND_ALONE, "git switch main && git merge --no-edit work": ON_MAIN}
    ),
    "landing there, seen from elsewhere": Advice(
        {
            LAND: LAND_ALONE,
            "git -C 'PLACE/project' switch main && git -C 'PLACE/project' merge --no-edit work": ON_MAIN,
        },
    ),
    "completed in a linked worktree": Advice(
        {
            "git -C 'PLACE/project-gal-1' log --stat COMMIT..gal-1-reject-empty-names": READS,
            DIFF: READS,
            LAND: Promise(0, LANDED),
            f"git -C 'PLACE/project-gal-1' fetch . gal-1-reject-empty-names:main{FORWARD}": Promise(0, LANDED),
        },
    ),
    "landing where the base is checked out": Advice(
        {LAND: Promise(0, LANDED), "git merge --ff-only gal-1-reject-empty-names": Promise(0, LANDED)},
    ),
    "landing where the base has moved": Advice(
        {LAND: LAND_ALONE, "git merge --no-edit gal-1-reject-empty-names": Promise(0, LANDED)}
    ),
    "landing that git would refuse": Advice(
        {f"{LAND}; git alone: what it writes is not committed in PLACE/project": Promise(4, NOT_LANDED)},
    ),
    "landing that git would not switch for": Advice({f"{LAND}; git alone: something is not committed": LAND_ALONE}),
    "landing that would conflict": Advice(
        {f"{LAND}; git alone: conflicts with changes of main": Promise(7, NOT_LANDED)},
    ),
    "land on the branch of another run": Advice({SHOW: READS}),
    "landing on the branch of another run": Advice(
        {"redfirst show run-GAL-1   # finish it first: it is at work on work, and publishes there": READS},
    ),
    "no such task": Advice({SHOW: READS}),
    "the objects of a run are gone": Advice({SHOW: READS, "redfirst explain run-GAL-1": READS}),
    "an ended run is approved": Advice({SHOW: READS}),
    "an abandoned run is approved": Advice({AGAIN: Promise(0, TWO_COMMITS), SHOW: READS}),
    "an ended run is abandoned": Advice({SHOW: READS}),
    "no gate": Advice({RESUME: COMPLETED}),
    "budget": Advice(
        {
            SHOW: READS,
            WHY: READS,
            "redfirst resume run-GAL-1 --set limits.dispatches=NUMBER": COMPLETED,
            ABANDON: ABANDONED,
        },
        "parked/budget",
    ),
    "abandoned": Advice(
        {"redfirst explain run-GAL-1": READS, DIFF: READS, AGAIN: Promise(0, TWO_COMMITS)}, "cancelled/abandoned"
    ),
    "abandoned in a linked worktree": Advice(
        {
            "redfirst explain run-GAL-1": READS,
            DIFF: READS,
            "cd 'PLACE/project-gal-1' && redfirst run GAL-1": Promise(
                0, "$ test -d ../project-gal-1/.workflow/run-GAL-1@2"
            ),
            f"git worktree remove 'PLACE/project-gal-1' && git branch -D gal-1-reject-empty-names{STAYS}": REMOVED,
        },
        "cancelled/abandoned",
    ),
    "abandoned, seen from the worktree that was made": Advice(
        {
            "git -C 'PLACE/project' worktree remove 'PLACE/project-gal-1' && "
            f"git -C 'PLACE/project' branch -D gal-1-reject-empty-names{STAYS}": REMOVED
        },
    ),
    "loops exhausted": Advice(
        {"redfirst explain run-GAL-1": READS, DIFF: READS, AGAIN: Promise(7, ENDED)}, "failed/loops_exhausted"
    ),
    "driver died": Advice({RESUME: COMPLETED, ABANDON: ABANDONED}),
    "agent unusable": Advice(
        {WHY: READS, "redfirst doctor": READS, RESUME: Promise(4, "parked/agent_unusable"), ABANDON: ABANDONED},
        "parked/agent_unusable",
    ),
    "branch moved": Advice(
        {
            WHY: READS,
            "git log COMMIT..work": READS,
            RESUME: Promise(4, "parked/branch_moved"),
            ABANDON: ABANDONED,
        },
        "parked/branch_moved",
    ),
    "worktree changed": Advice(
        {WHY: READS, "git status": READS, RESUME: Promise(4, "parked/worktree_changed"), ABANDON: ABANDONED},
        "parked/worktree_changed",
    ),
    "what puts away what publication would overwrite": Advice(
        {
            "git stash push --include-untracked -- greet.sum": Promise(0, CLEAN_SOURCES),
            "redfirst resume run-GAL-1": Promise(4, "parked/worktree_changed"),
        },
    ),
    "rejected in a worktree that was made for it": Advice(
        {
            WHY: READS,
            "cd 'PLACE/project-gal-1' && redfirst doctor": Promise(2),
            "cd 'PLACE/project-gal-1' && redfirst run GAL-1": Promise(2, "rejected/baseline_impossible"),
            f"git worktree remove 'PLACE/project-gal-1' && git branch -D gal-1-reject-empty-names{STAYS}": REMOVED,
        },
    ),
    "baseline impossible": Advice(
        {WHY: READS, "redfirst doctor": Promise(2), AGAIN: Promise(2, "rejected/baseline_impossible")},
        "rejected/baseline_impossible",
    ),
    "no runs": Advice({"redfirst run ISSUE": COMPLETED, "redfirst runs": READS}),
    "no run waits": Advice({"redfirst runs": READS}),
    "no such recipe": Advice({"redfirst recipes list": READS}),
    "a recipe of no issue": Advice({"redfirst recipes show research": READS}),
    "the ref of a run that is gone": Advice(
        {
            "git update-ref -d refs/redfirst/runs/WORKTREE/run-GAL-1": Promise(
                0, '$ test -z "$(git for-each-ref refs/redfirst/runs)"'
            )
        },
    ),
    "the claim of a run that is gone": Advice(
        {"redfirst abandon GAL-1": Promise(0, '$ test -z "$(git for-each-ref refs/redfirst/claims)"')},
    ),
    "an edit after its gate": Advice({'redfirst reject run-GAL-1 --to plan --feedback "..."': SENT_BACK}),
    "landing, seen from the worktree that was made": Advice(
        {LAND: Promise(0, LANDED), f"git fetch . gal-1-reject-empty-names:main{FORWARD}": Promise(0, LANDED)},
    ),
    "landing where the base is elsewhere": Advice(
        {
            LAND: Promise(0, LANDED),
            "git -C 'PLACE/project' merge --ff-only gal-1-reject-empty-names": Promise(0, LANDED),
        },
    ),
    "unknown run": Advice({"redfirst runs": READS}),
    "claimed in a linked worktree": Advice({SHOW: READS, APPROVE: COMPLETED, ABANDON: ABANDONED}),
    "claimed by a run whose driver died": Advice({SHOW: READS, RESUME: COMPLETED, ABANDON: ABANDONED}),
    "a list of issues that are claimed": Advice({SHOW: READS}),
    "the claim's worktree is gone": Advice(
        {"redfirst abandon GAL-1": Promise(0, '$ test -z "$(git for-each-ref refs/redfirst/claims)"')},
    ),
    "the claim's worktree is locked": Advice(
        {
            "git worktree unlock 'PLACE/project-gal-1'": Promise(0, "$ true"),
            "redfirst abandon GAL-1": Promise(0, '$ test -z "$(git for-each-ref refs/redfirst/claims)"'),
        },
    ),
    "a second run in one worktree": Advice(
        {SHOW: READS, ABANDON: ABANDONED, "redfirst run GAL-2 --worktree": Promise(0, "$ test -d ../project-gal-2")},
    ),
    "detached": Advice({"git switch -c gal-1": Promise(0, ON_OWN)}),
    "detached, with a branch of the issue": Advice({"git switch gal-1": Promise(0, ON_OWN)}),
    "a branch with a space": Advice({"git branch -m NAME": Promise(0, ON_MINE)}),
    "no commit": Advice({"git add --all && git commit": Promise(0, "$ git rev-parse HEAD && " + CLEAN[2:])}),
    "on the base": Advice(
        {
            "git switch -c gal-1": Promise(0, ON_OWN),
            "redfirst run GAL-1 --worktree": Promise(0, "$ test -d ../project-gal-1"),
        },
    ),
    "no base": Advice({"redfirst run GAL-1 --base REF": COMPLETED}),
    "no base for a worktree": Advice(
        {"redfirst run GAL-1 --worktree --base REF": Promise(0, "$ test -d ../project-gal-1")},
    ),
    "no such base": Advice({"git branch --all": READS}),
    "dirty": Advice(
        {
            "git status": READS,
            "git stash --include-untracked": Promise(0, CLEAN),
            "git add --all && git commit": Promise(0, CLEAN),
        },
    ),
    "dirty with what tools made": Advice(
        {
            "printf '%s\\n' .venv/ >> \"$(git rev-parse --git-path info/exclude)\"": Promise(
                0, "$ ! git status --porcelain | grep -q venv"
            ),
            "git status": READS,
            "git stash --include-untracked": Promise(0, "$ test -d .venv || true"),
            "git add --all && git commit": Promise(0, CLEAN),
        },
    ),
    "a blocked issue": Advice({"redfirst issue list": READS, "redfirst issue ready": READS}),
    "no tracker": Advice({"redfirst issue new --title TITLE": Promise(0, "$ ls TODO/*-1.md")}),
    "a broken tracker": Advice({"redfirst issue lint": Promise(2)}),
    "no such issue": Advice({"redfirst issue list": READS}),
    "an issue that is not there": Advice({"redfirst issue list": READS}),
    "no id": Advice({"redfirst issue list": READS}),
    "no identity": Advice(
        {
            "git config user.name NAME": Promise(0, '$ test "$(git config user.name)" = mine'),
            "git config user.email ADDRESS": Promise(0, '$ test "$(git config user.email)" = ada@example.org'),
        },
    ),
    "bare": Advice({"git worktree add ../work BRANCH": Promise(0, "$ cd ../work && test -f greet.sum")}),
    "done in a linked worktree": Advice(
        {SHOW: READS, "git log --stat COMMIT..gal-1-reject-empty-names": READS},
    ),
    ".workflow is committed": Advice(
        {"git rm -r --cached .workflow && git commit": Promise(0, '$ test -z "$(git ls-files .workflow)"')},
    ),
    "a wrong word": Advice({"redfirst run --help": READS}),
    "no such diagram": Advice({"redfirst routes --format mermaid --diagram phase7": READS}),
    "no such schema": Advice({"redfirst schema": READS}),
    "no such type of event": Advice({"redfirst schema event": READS}),
    "no such event": Advice({"redfirst events": READS}),
    "wrong signals": Advice({"redfirst routes": READS, "redfirst simulate --help": READS}),
    "an unknown key": Advice({"redfirst config show": READS}),
    "rejected: dirty": Advice(
        {"git status": READS, "git stash --include-untracked": Promise(0, CLEAN), AGAIN: Promise(2)},
        "rejected/dirty_tree",
    ),
    "rejected: detached": Advice({"git switch work": Promise(0, ON_WORK), AGAIN: Promise(2)}, "rejected/detached_head"),
    "rejected: on the base": Advice(
        {
            "git switch -c gal-1": Promise(0, ON_OWN),
            "redfirst run GAL-1 --worktree": Promise(4, "$ test -d ../project-gal-1"),
        },
        "rejected/branch_is_base",
    ),
    "rejected: branch moved": Advice({AGAIN: Promise(4, ENDED)}, "rejected/branch_moved"),
    "rejected: no tracker": Advice(
        {"redfirst issue new --title TITLE --id GAL-1": Promise(0, "$ test -f TODO/GAL-1.md")},
        "rejected/tracker_missing",
    ),
    "rejected: broken tracker": Advice(
        {"redfirst issue lint": Promise(2), AGAIN: Promise(2)}, "rejected/tracker_invalid"
    ),
    "rejected: missing dependency": Advice(
        {"redfirst issue show GAL-1": READS, "redfirst issue lint": Promise(2)},
        "rejected/dependency_missing",
    ),
    "rejected: unmet dependency": Advice(
        {"redfirst issue show GAL-1": READS, "redfirst issue ready": READS}, "rejected/dependency_unmet"
    ),
    "a claim that cannot be read": Advice(
        {
            "git cat-file -p refs/redfirst/claims/GAL-1": READS,
            "git update-ref -d refs/redfirst/claims/GAL-1": Promise(
                0, '$ test -z "$(git for-each-ref refs/redfirst/claims)"'
            ),
        },
    ),
    "an unknown flag key": Advice({"redfirst config show": READS}),
    "no role to explain": Advice({"redfirst agents explain --help": READS}),
}

GO_ON: Final = {RESUME: Promise(4, "parked/agent_unusable"), ABANDON: ABANDONED}
"""Of a run whose agent fails at its first question: that it is asked shows that the run goes on."""
AGAIN_ANEW: Final = Promise(4, ENDED)
"""Another run, whose agent fails at its first question."""
LOG = "git log --stat COMMIT..work"
WATCH: Final = "redfirst show run-GAL-1 --log --follow"
DOCTOR: Final = "redfirst doctor"
FEEDBACK: Final = "redfirst explain run-GAL-1"

OUTCOMES: Final[dict[str, Advice]] = {
    name: Advice(lines, name if "/" in name else None)
    for name, lines in {
        "rejected/usage": {"redfirst --help": READS},
        "rejected/config": {"redfirst config show": READS, DOCTOR: READS, AGAIN: AGAIN_ANEW},
        "rejected/untrusted": {"redfirst config show": READS, "redfirst trust": READS, AGAIN: AGAIN_ANEW},
        "rejected/disk": {DOCTOR: READS, AGAIN: AGAIN_ANEW},
        "rejected/environment": {WHY: READS, DOCTOR: READS, AGAIN: AGAIN_ANEW},
        "rejected/locked": {WATCH: READS},
        "rejected/issue_not_found": {"redfirst issue list": READS},
        "rejected/issue_not_todo": {
            "redfirst issue show GAL-1": READS,
            "redfirst issue status GAL-1 todo": READS,
            AGAIN: AGAIN_ANEW,
        },
        "rejected/superseded": {"redfirst runs": READS},
        "rejected/hub_unavailable": {DOCTOR: READS},
        "rejected/claimed_elsewhere": {"redfirst runs": READS, "git for-each-ref refs/redfirst/claims": READS},
        "parked/environment": {WHY: READS, DOCTOR: READS, **GO_ON},
        "parked/agent_unavailable": {DOCTOR: READS, **GO_ON},
        "cancelled/interrupted": {SHOW: READS, **GO_ON},
        "failed/escape": {WHY: READS, "git status": READS, "git reflog": READS, DOCTOR: READS},
        "failed/cleanup_needed": {WHY: READS, "git status": READS, DOCTOR: READS},
        "failed/baseline_impossible": {WHY: READS, DOCTOR: READS, AGAIN: AGAIN_ANEW},
        "failed/evidence_not_reached": {FEEDBACK: READS, DIFF: READS, AGAIN: AGAIN_ANEW},
        "completed/nothing_to_do": {WHY: READS, LOG: READS},
        "completed_with_blockers/blockers": {
            SHOW: READS,
            "redfirst issue list --label followup": READS,
            LOG: READS,
            DIFF: READS,
        },
        "parked/regression": {WHY: READS, DIFF: READS, RESUME: COMPLETED, ABANDON: ABANDONED},
        "parked/signing": {
            WHY: READS,
            "git config --show-origin --get-regexp '^(gpg|user.signingkey|commit.gpgsign)'": READS,
            RESUME: COMPLETED,
            ABANDON: ABANDONED,
        },
    }.items()
} | {
    "a damaged journal": Advice({ABANDON: ABANDONED, "git for-each-ref refs/redfirst/runs": READS}),
    "rows of another version": Advice({ABANDON: ABANDONED}),
    "a damaged result": Advice({ABANDON: ABANDONED}),
    "a lost run.json": Advice({"git for-each-ref refs/redfirst/claims": READS}),
    "onto what does not hold its start": Advice({"git log COMMIT..COMMIT": READS}),
    "no desk waits": Advice({RESUME: GO_ON[RESUME]}),
    "live": Advice({"redfirst desk run-GAL-1 --role orchestrator": READS, WATCH: READS}),
    "driven": Advice({WATCH: READS, "redfirst stop run-GAL-1": Promise(0, "cancelled/interrupted")}),
    "driven, and no run is named": Advice({WATCH: READS}),
    "claimed by a live run": Advice({SHOW: READS, WATCH: READS}),
    "the page of a run": Advice({"redfirst show run-GAL-1 -v": READS}),
    "why in short": Advice({"redfirst explain run-GAL-1 -v": READS}),
    "a desk waits": Advice(
        {
            "redfirst desk run-GAL-1 --role orchestrator": READS,
            "redfirst hand-in run-GAL-1 --role orchestrator": Promise(2),
        },
    ),
}
"""How a run can stand that no situation above brings about (`test_next_lines_outcomes`)."""

_WRITTEN: Final = Promise(0, "$ test -f redfirst.toml")
SET_UP: Final[dict[str, Advice]] = {
    "no agent is installed": Advice(
        {
            "redfirst init --agent human": _WRITTEN,
            "redfirst init --agent command --argv PROGRAM": _WRITTEN,
            "redfirst init --agent NAME": _WRITTEN,
        },
    ),
    "configured": Advice(
        {
            "git add redfirst.toml && git commit -m 'configure redfirst'": Promise(
                0, "$ git cat-file -e :redfirst.toml"
            ),
            "redfirst trust": Promise(2),
            "redfirst doctor --agents": READS,
            "redfirst issue new --title TITLE --edit && git add TODO && git commit -m 'file PROJECT-1'": Promise(
                0, "$ git cat-file -e :TODO/PROJECT-1.md"
            ),
            "redfirst run PROJECT-1 --worktree": Promise(4, "$ test -d ../project-project-1"),
        },
    ),
    "configured, and the tracker is broken": Advice({"redfirst issue lint": Promise(2)}),
    "only shown": Advice({"redfirst init --agent command --argv 'echo '\"'\"'a b'\"'\"''": _WRITTEN}),
    "a value was set": Advice(
        {"git add redfirst.toml && git commit -m 'configure redfirst'": Promise(0, "$ git diff --quiet HEAD")},
    ),
    "not trusted yet": Advice({"redfirst trust": Promise(2)}),
    "not trusted, and run": Advice({"redfirst trust   # shows these values, and asks": Promise(2)}),
    "no terminal to trust at": Advice({"redfirst trust --yes": READS}),
    "configured already": Advice(
        {
            "redfirst config show": READS,
            "redfirst init --agent human --dry-run   # shows what it would have been": READS,
        },
    ),
    "doctor: detached": Advice({"git switch -c NAME": Promise(0, "$ git symbolic-ref HEAD")}),
    "doctor: no base": Advice({"redfirst run ISSUE --base REF": Promise(2, "$ test -d .workflow || true")}),
    "doctor: broken tracker": Advice({"redfirst issue lint": Promise(2)}),
    "doctor: no tracker": Advice({"redfirst issue new --title TITLE": Promise(0, "$ ls TODO/*-1.md")}),
    "a new issue": Advice({"redfirst issue edit GAL-2": Promise(0, "$ test -s TODO/GAL-2.md")}),
    "a broken recipe": Advice({"redfirst recipes lint bad.yaml": Promise(2)}),
    "no such commit": Advice(
        {
            "redfirst runs": READS,
            "git fetch REMOTE 'refs/redfirst/runs/*:refs/redfirst/runs/*'": READS,
        },
    ),
}
"""Before there is a run (`test_next_lines_set_up`)."""
