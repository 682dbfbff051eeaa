"""Advice about runs that no situation of `tests/e2e/next_table.py` executes: the reason of each, by module."""

from __future__ import annotations

from typing import Final

from house.unexecuted import DESK, NETWORK, NO_BOX, OF_RECIPES, SENTENCE

TRUST: Final = "it asks at a terminal: tests/cli/test_trust_cli.py answers there"
DOCTOR: Final = (
    'doctor says what a run would refuse: the situations "no commit" and "dirty" type it in such a repository'
)
OF_GATES: Final = "a gate of a recipe's run: tests/workflows/test_gates_and_commands.py types it"
OF_ANSWERS: Final = "a run that waits for a person: tests/people types it"
OF_GONE_WORKTREES: Final = "a run whose worktree is gone: tests/cli/test_worktrees_cli.py executes it"
OF_LANDING: Final = "a finished run that is landed: tests/landing/test_landing.py types it"

OF_UNFIT: Final = "a repository that no run can work with: tests/runs/test_unfit.py makes it"

UNEXECUTED_OF_RUNS: Final[dict[str, dict[str, str]]] = {
    "runs/unfit.py": {
        **dict.fromkeys(
            (
                "git am --abort",
                "git am --continue",
                "git bisect reset",
                "git check-ignore -v -- {}",
                "git cherry-pick --abort",
                "git cherry-pick --continue",
                "git config --get-regexp '^filter\\.{}\\.'",
                "git lfs install",
                "git ls-files -v",
                "git merge --abort",
                "git merge --continue",
                "git rebase --abort",
                "git rebase --continue",
                "git remote --verbose",
                "git revert --abort",
                "git revert --continue",
                "git status",
                "git update-index --no-skip-worktree --no-assume-unchanged {}",
                "redfirst run ISSUE --worktree",
            ),
            OF_UNFIT,
        ),
        "git ignores {} ({}), and a run starts from issues that are committed. Take that line out, then commit the "
        "folder.": SENTENCE,
    },
    "git/publishing.py": {"git check-ignore -v -- {}": OF_UNFIT},
    "steps/asking/draft_places.py": {"git check-ignore -v -- {}": OF_UNFIT},
    "service/ports.py": {"redfirst doctor": OF_UNFIT},
    "cli/issue_lists.py": {"redfirst issue lint": OF_UNFIT},
    "service/land.py": {
        "git -C {} status": OF_LANDING,
        "redfirst diff {}": OF_LANDING,
        "redfirst explain {} --last": OF_LANDING,
        "redfirst gc   # says until when its worktree is kept": "tests/landing/test_gc.py types it",
        "redfirst land {} --onto {}": OF_LANDING,
        "redfirst work --once": OF_LANDING,
        "redfirst runs": "while another process lands: it is typed in other situations",
        "redfirst run {} --worktree --base {} --previous {}": OF_LANDING,
    },
    "service/land_choice.py": {
        "git branch --list": OF_LANDING,
        "redfirst land --onto {}": OF_LANDING,
        "redfirst land {}": OF_LANDING,
    },
    "runs/recipe_run.py": {
        "redfirst abandon {}": "of a journal that is damaged: runs/run.py says the same, and is typed",
    },
    "service/gates.py": {
        'redfirst answer {} "..."': OF_ANSWERS,
        "redfirst show {} --packet": OF_ANSWERS,
    },
    "service/orchestrator.py": {"redfirst show {}": OF_ANSWERS},
    "runs/store.py": {"git update-ref -d {} {}": "git refuses to delete a claim: tests/runs/test_run_places.py"},
    "service/draft_edit.py": {"redfirst show {}": OF_ANSWERS},
    "service/answers.py": {
        "redfirst resume {}": OF_ANSWERS,
        "redfirst show {}": OF_ANSWERS,
        'redfirst answer {} "..."': OF_ANSWERS,
    },
    "service/stopping.py": dict.fromkeys(
        (
            "redfirst resume {}",
            "redfirst abandon {}",
            "redfirst stop {} --now",
            "redfirst show {} --log --follow",
            "redfirst show {}",
        ),
        OF_ANSWERS,
    ),
    "service/packets.py": {
        "redfirst show {} --packet": OF_ANSWERS,
        'redfirst answer {} "..."': OF_ANSWERS,
        "redfirst approve {}": "of an answer that a crash left half on record, at an instant that no test may choose",
        "redfirst show {}": OF_ANSWERS,
        "redfirst abandon {}": OF_ANSWERS,
    },
    "service/recipe_again.py": {
        "redfirst resume {}": OF_RECIPES,
        "redfirst run {}": OF_RECIPES,
        "redfirst show {}": OF_RECIPES,
    },
    "service/recipe_result.py": {
        "redfirst show {} --log --follow": "of a run that is driven: runs/next_actions.py says the same, and is typed",
        "redfirst abandon {}": OF_RECIPES,
        "redfirst resume {}": OF_RECIPES,
    },
    "service/recipe_gates.py": {
        "redfirst approve {}": OF_GATES,
        'redfirst approve {} {}="..."': OF_GATES,
        'redfirst reject {} --feedback "..."': OF_GATES,
        "redfirst resume {}": OF_GATES,
        "redfirst show {}": OF_GATES,
    },
    "service/recipe_driving.py": {
        "redfirst resume {}": OF_RECIPES,
    },
    "service/recipe_run.py": {
        "redfirst resume {}": OF_RECIPES,
        "redfirst show {}": OF_RECIPES,
    },
    "steps/recipe_outcome.py": {
        "redfirst resume {} --step {}": "a step of a recipe: tests/workflows/test_going_on.py types it",
        "redfirst resume {}": OF_RECIPES,
    },
    "service/recipe_writing.py": {
        "redfirst trust": TRUST,
    },
    "recipes/plan.py": {
        "redfirst claims the issue": SENTENCE,
        "redfirst puts the commits on the branch": SENTENCE,
    },
    "runs/next_actions.py": {
        "redfirst show {run} --packet": OF_ANSWERS,
        'redfirst answer {run} "..."': OF_ANSWERS,
        "git worktree add ../work {branch}": "an outcome that no run has: OF_OUTCOMES",
        "redfirst recipes list": "an outcome that no run of an issue has: OF_OUTCOMES",
        "redfirst resume {run} --onto {branch}": "tests/e2e/test_branch_moved.py reads it in the note and types it",
    },
    "runs/records.py": {
        "ls -lR {}": "it lists a folder of strangers' files, and belongs to no program of ours",
    },
    "runs/roster.py": {
        "git ls-tree -r --name-only {} run/": OF_GONE_WORKTREES,
        "git refuses to look into {}: {}": SENTENCE,
        "git show {}": OF_GONE_WORKTREES,
        "git show {}:run/summary.md": OF_GONE_WORKTREES,
    },
    "runs/run.py": {
        "redfirst show {}": OF_RECIPES,
        "git for-each-ref": 'the start of the command that the situation "a lost run.json" types',
    },
    "runs/tracker.py": {
        "git add {} && git commit -m 'file {}'": "tests/cli/test_worktrees_cli.py files an issue and types it",
        "redfirst run {} --worktree --base {}": "the same test types it",
    },
    "runs/uncommitted.py": {
        "git rev-parse --git-path info/exclude": "part of a command that is executed",
    },
    "service/composition.py": {
        "cd {} && redfirst run {}": (
            "after a signal at the start of run --worktree: tests/e2e/test_interruptions.py compares it, and"
            " starts again"
        ),
        "redfirst abandon {}": (
            'beside a changed configuration, to begin anew; the situation "driver died" types it at that point of a run'
        ),
        "redfirst resume {}": (
            "after a full disk: tests/e2e/test_bad_disks.py reads it, makes room and resumes, within one shell script"
        ),
        "redfirst show {} --log --follow": (
            'two processes at one instant; the situation "driven" types it while another one drives'
        ),
    },
    "service/doctor.py": {
        "git add --all && git commit": DOCTOR,
        "git commit --all": DOCTOR,
        "git commits as {} <{}>": SENTENCE,
        "git mv {} NAME": OF_UNFIT,
        "git is not on PATH": SENTENCE,
        "git switch -c NAME, or redfirst run ISSUE --worktree": (
            'two commands: the situations "doctor: detached" and "configured" type them'
        ),
        "redfirst trust": TRUST,
    },
    "service/human_answer.py": {
        "cd {} && redfirst desk {}": "tests/cli/test_hand_in_cli.py types it in a shell",
        "git checkout -- {}": DESK,
        "redfirst desk": DESK,
        "redfirst resume {}": DESK,
        "{}   # {}: {}": SENTENCE,
    },
    "service/dry_run.py": {
        "redfirst init": NETWORK,
    },
    "service/in_the_way.py": {
        "redfirst diff {}": "files that cannot be merged: tests/e2e/test_branch_moved.py types it",
    },
    "service/init_config.py": {
        "redfirst config show": (
            'a comment of the file that init writes; the situation "configured already" types it there'
        ),
        "redfirst hand-in": DESK,
    },
    "service/installed.py": {
        "redfirst agents try": "of an agent that starts in the box: it would ask its model",
        "redfirst init": NETWORK,
        "redfirst init --agent": (
            "the agent is one that is installed: tests/cli/test_init_cli.py writes its file with the same words"
        ),
    },
    "service/isolation.py": {
        "redfirst doctor": NO_BOX,
    },
    "service/other_worktrees.py": {
        "git -C {} ": "the frame around a command; what stands in it is executed",
    },
    "service/next_lines.py": {
        "git log --stat {}..{}": "of a result that a person put there: tests/e2e/test_branch_moved.py types it",
        "redfirst resume {}": "what is told beside a command that is there already",
    },
    "service/patches.py": {
        "git no longer has the objects of {} ({}): its ref {} {}. Reports, evidence and journal are still in {}.": (
            SENTENCE
        ),
    },
    "service/recipe_choice.py": {
        "redfirst recipes list": "of a recipe of the repository: tests/workflows/test_quick.py types it",
        "redfirst trust": "of a recipe of the repository: tests/workflows/test_quick.py allows one with --yes",
    },
    "service/run_config.py": {
        "redfirst does not run inside one of its own agents (REDFIRST_DEPTH is set).": SENTENCE,
    },
    "service/run_flags.py": {
        "redfirst show {}": "a run folder of a stranger: tests/e2e/test_flags_of_a_run.py types it",
    },
    "service/verification_ports.py": {
        "redfirst doctor": "tests that broke out of their box: only a broken box brings it about",
    },
    "steps/context.py": {
        "redfirst abandon {}": (
            'an artifact that was removed while a run is driven; the situation "a damaged result" gives up a'
            " run as damaged"
        ),
    },
    "steps/publication/bases.py": {
        "git switch {}, redfirst resume {}": 'two commands of a note: "rejected: detached" and "driver died" type them',
    },
    "steps/publication/commits.py": {
        "redfirst ({})": "the name of the program",
    },
    "steps/publication/manual_ways.py": {
        "git stash": 'the start of the command that the situation "what puts it away" types',
        "redfirst abandon {}, then redfirst run {} --previous {}": (
            "tests/e2e/test_branch_moved.py reads the recipe in the note and types it, step by step"
        ),
        "git cherry-pick would fit, but for what is not committed: {}": SENTENCE,
        "git cherry-pick {}": "tests/e2e/test_branch_moved.py reads the recipe in the note and types it, step by step",
        "git cherry-pick {}..{} would stop: {}": SENTENCE,
        "redfirst abandon {}": "tests/e2e/test_branch_moved.py reads the recipe in the note and types it, step by step",
        "redfirst issue status {} done": (
            "tests/e2e/test_branch_moved.py reads the recipe in the note and types it, step by step"
        ),
        "redfirst resume {} --onto {}": "tests/e2e/test_branch_moved.py reads it in the note and types it",
    },
    "steps/publication/moving.py": {
        "git did not move {}: has a killed git left {}.lock? Remove it, then resume": SENTENCE,
        "git refused to update the files: {}": SENTENCE,
        "git stash": "tests/e2e/test_next_lines.py types the whole command, and brings back what it put away",
    },
    "verification/recheck.py": {
        "git for-each-ref": "part of a command for more refs than a test would make",
    },
}
"""The advice of modules that start, drive, publish and describe runs, by module."""
