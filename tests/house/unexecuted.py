"""What the source advises and `tests/e2e/next_table.py` does not execute: the reason of each, by module."""

from __future__ import annotations

from typing import Final

SENTENCE: Final = "a sentence for a person, no command"
DESK: Final = "tests/e2e/test_human_roles.py, tests/cli/test_hand_in_cli.py: a person works at a desk"
INSTALL: Final = "needs an agent that is installed, an editor, or the network"
DOCTOR: Final = "of doctor; the preconditions of a run execute the same"

UNEXECUTED: Final[dict[str, dict[str, str]]] = {
    "backends/human.py": {
        "redfirst {}": DESK,
        "redfirst {} {} --role {}": DESK,
    },
    "boxes/box.py": {
        'or set sandbox = "none" in your own configuration: then nothing is isolated': SENTENCE,
    },
    "cli/doctor.py": {
        "redfirst {}": "the name of the program and its version",
    },
    "cli/errors.py": {
        "report it with the lines above": SENTENCE,
        "report it with {}": SENTENCE,
    },
    "cli/hand_in.py": {
        "fill in a copy of {} and give it with --report FILE": SENTENCE,
        "redfirst abandon RUN": "FILE is a report that a person wrote: tests/cli/test_hand_in_cli.py",
        "redfirst hand-in --report FILE": "FILE is a report that a person wrote: tests/cli/test_hand_in_cli.py",
    },
    "cli/init.py": {
        "git add {} && git commit -m 'configure redfirst'": INSTALL,
        "npm install -g @anthropic-ai/claude-code && redfirst init": INSTALL,
        "redfirst config show": INSTALL,
        "redfirst demo   # see the whole way with scripted agents": INSTALL,
        "redfirst doctor --agents": INSTALL,
        "redfirst init": INSTALL,
        "redfirst init --agent NAME   # for one that you will install: {}": INSTALL,
        "redfirst init --agent command   # a program of your own": INSTALL,
        "redfirst init --agent human   # do the work yourself, with the same gate": INSTALL,
        "redfirst init --dry-run   # shows what to add, once {} is moved away": INSTALL,
        "redfirst issue new --title TITLE --edit && git add {} && git commit -m 'the first issue'": INSTALL,
        "redfirst run ISSUE --worktree": INSTALL,
        "redfirst trust": INSTALL,
    },
    "cli/issue_lists.py": {
        "redfirst abandon {}": "part of a sentence; the claims of linked worktrees execute it",
        "redfirst show {}": "part of a sentence; the claims of linked worktrees execute it",
    },
    "cli/main.py": {
        "redfirst {}": "the name of the program and its version",
    },
    "cli/show_text.py": {
        "redfirst show {}": "what is left out of its own page",
    },
    "cli/recipes.py": {
        "redfirst recipes {} {}": "tests/workflows: a recipe that cannot be used",
    },
    "config/load.py": {
        "add a table [spares.{}] with at least its backend": SENTENCE,
        "redfirst init   # writes one for the agents that are installed here": INSTALL,
        "set {} in [agents] or [agents.{}] of your redfirst.toml": SENTENCE,
        "without any agent: redfirst demo, or do a role's work yourself: --agent ROLE=human": SENTENCE,
    },
    "config/problems.py": {
        "and {} more": SENTENCE,
        "message": SENTENCE,
    },
    "config/sources.py": {
        "move the keys of [tool.redfirst] to {} and remove that table": SENTENCE,
    },
    "config/trust.py": {
        "in CI: {}=1": SENTENCE,
        "look at {} and remove it; then run redfirst trust where it is needed": SENTENCE,
        "redfirst trust   # shows these values, and asks": "tests/cli/test_trust_cli.py answers it",
    },
    "demo/command.py": {
        "cd {} && {}": "tests/e2e/test_demo.py executes it",
    },
    "demo/place.py": {
        "git is not installed, or not on PATH.": SENTENCE,
        "git {} failed in {}: {}": SENTENCE,
        "redfirst demo": "tests/e2e/test_demo.py",
    },
    "engine/journal.py": {
        "git for-each-ref refs/redfirst/runs": "a damaged run: tests/e2e/test_crash_and_resume.py",
        "redfirst abandon {}": "a damaged run: tests/e2e/test_crash_and_resume.py",
    },
    "engine/run.py": {
        "redfirst abandon {}": "a run of another version: abandon is executed of other runs",
    },
    "gateway/route.py": {
        "mend {}": SENTENCE,
        "or name the model service's host in NO_PROXY": SENTENCE,
    },
    "git/ignored.py": {
        "git cannot tell what is ignored here: {}": SENTENCE,
    },
    "git/process.py": {
        "free disk space": SENTENCE,
        "git cannot write: {}. Make room or mend the permissions, then try again.": SENTENCE,
    },
    "git/repository.py": {
        "git is not installed, or not on PATH.": SENTENCE,
        "git refuses to work in {}: {}": SENTENCE,
    },
    "git/settings.py": {
        "git does not know who commits. Set it: git config user.name ... and git config user.email ...": SENTENCE,
    },
    "git/values.py": {
        "git {} ended with {}: {}": SENTENCE,
    },
    "policy/listed_commands.py": {
        "cd pushd pwd": "a list of words",
    },
    "runs/claimants.py": {
        "redfirst show {} --log --follow": "tests/e2e/test_signals.py: another process drives the run",
    },
    "runs/drafts.py": {
        'redfirst {} --feedback "..."': "part of a sentence; the gates execute it",
    },
    "runs/next_actions.py": {
        "git config --show-origin --get-regexp '^(gpg|user.signingkey|commit.gpgsign)'": "of an outcome in OF_OUTCOMES",
        "git for-each-ref refs/redfirst/claims": "of an outcome in OF_OUTCOMES",
        "git reflog": "of an outcome in OF_OUTCOMES",
        "git worktree add ../work {branch}": "of an outcome in OF_OUTCOMES",
        "redfirst resume {run} --onto {branch}": "tests/e2e/test_branch_moved.py executes it",
        "redfirst --help": "of an outcome in OF_OUTCOMES",
        "redfirst config show": "of an outcome in OF_OUTCOMES",
        "redfirst issue list": "of an outcome in OF_OUTCOMES",
        "redfirst recipes list": "of an outcome in OF_OUTCOMES",
        "redfirst issue list --label followup": "of an outcome in OF_OUTCOMES",
        "redfirst issue status {issue} todo": "of an outcome in OF_OUTCOMES",
        "redfirst runs": "of an outcome in OF_OUTCOMES",
        "redfirst show {run} --log --follow": "tests/e2e/test_signals.py: another process drives the run",
        "redfirst trust": "of an outcome in OF_OUTCOMES",
    },
    "runs/files.py": {
        "free disk space": SENTENCE,
    },
    "runs/lease.py": {
        "redfirst show {} --log --follow": "tests/e2e/test_signals.py: another process drives the run",
    },
    "runs/records.py": {
        "ls -lR {}": SENTENCE,
    },
    "runs/roster.py": {
        "git refuses to look into {}: {}": SENTENCE,
    },
    "runs/run.py": {
        "git for-each-ref refs/redfirst/claims": "a damaged run or claim: abandon is executed of other runs",
        "redfirst abandon {}": "a damaged run or claim: abandon is executed of other runs",
        "redfirst {}": "the name of the program and its version",
    },
    "runs/uncommitted.py": {
        "git rev-parse --git-path info/exclude": "part of a command that is executed",
    },
    "service/composition.py": {
        "cd {} && redfirst run {}": "tests/e2e/test_interruptions.py: a signal before the run has begun",
        "redfirst resume {}": "tests/e2e/test_bad_disks.py: a run whose disk was full goes on",
        "redfirst show {} --log --follow": "tests/e2e/test_signals.py: another process drives the run",
    },
    "service/doctor.py": {
        "git add --all && git commit": DOCTOR,
        "git commit --all": DOCTOR,
        "git commits as {} <{}>": DOCTOR,
        "git is not on PATH": DOCTOR,
        "git switch -c NAME": DOCTOR,
        "git switch -c NAME, or redfirst run ISSUE --worktree": DOCTOR,
        "redfirst issue lint": DOCTOR,
        "redfirst issue new --title TITLE": DOCTOR,
    },
    "service/other_worktrees.py": {
        "cd {} && {}": "the frame around a command; what stands in it is executed",
        "git -C {} ": "the frame around a command; what stands in it is executed",
    },
    "service/gate_edits.py": {
        "redfirst approve {}": "tests/e2e/test_edits_at_gates.py; the gates execute the same",
        'redfirst reject {} --feedback "..."': "tests/e2e/test_edits_at_gates.py; the gates execute the same",
    },
    "service/human_answer.py": {
        "git checkout -- {}": DESK,
        "redfirst run ISSUE --agent ROLE=human": DESK,
        "redfirst runs": DESK,
        "redfirst {} {} --role {}": DESK,
        "{}   # {}: {}": SENTENCE,
    },
    "service/human_report.py": {
        "fill in a copy of {} and give it with --report FILE": SENTENCE,
    },
    "service/in_the_way.py": {
        "git log {}..{}": "tests/e2e/test_branch_moved.py; commands that only read",
        "git status": "tests/e2e/test_branch_moved.py; commands that only read",
        "redfirst diff {}": "tests/e2e/test_branch_moved.py; commands that only read",
        "redfirst show {}": "tests/e2e/test_branch_moved.py; commands that only read",
    },
    "service/installed.py": {
        "redfirst init --agent {}": "needs an agent that is installed: tests/cli/test_init_cli.py",
    },
    "service/isolation.py": {
        "redfirst doctor": "a machine without a box: tests/e2e/test_bad_input.py",
    },
    "service/landing.py": {
        "git -C {} merge {} {}": "executed as `git merge`, where the base is checked out",
        "git fetch . {}": "executed as `git -C WORKTREE fetch`, from another one",
    },
    "service/meant_run.py": {
        "redfirst runs": "tests/cli/test_meant_run.py; each command is executed elsewhere",
        "redfirst {} {}{}": "tests/cli/test_meant_run.py; each command is executed elsewhere",
    },
    "service/patches.py": {
        (
            "git no longer has the objects of {} ({}): its ref {} {}. Reports, evidence and journal are still in {}."
        ): "objects that git has pruned; both commands are executed of other runs",
        "redfirst explain {}": "objects that git has pruned; both commands are executed of other runs",
        "redfirst show {}": "objects that git has pruned; both commands are executed of other runs",
    },
    "service/recipe_files.py": {
        "redfirst recipes list": "tests/workflows: a recipe that is not there",
    },
    "service/run_config.py": {
        "redfirst does not run inside one of its own agents (REDFIRST_DEPTH is set).": SENTENCE,
    },
    "service/run_flags.py": {
        "redfirst show {}": "tests/e2e/test_flags_of_a_run.py; show is executed in every situation",
        "give {} with this command": SENTENCE,
    },
    "service/verification_ports.py": {
        "look at what changed, and undo what you did not do": SENTENCE,
        "redfirst doctor": "a dispatch without a run that has broken out: doctor is executed elsewhere",
    },
    "steps/publication/bases.py": {
        "git switch {}, redfirst resume {}": "two commands of a sentence; each is executed in other situations",
    },
    "steps/publication/commits.py": {
        "redfirst ({})": "the name of the program",
    },
    "steps/publication/moving.py": {
        "git did not move {}: has a killed git left {}.lock? Remove it, then resume": SENTENCE,
        "git refused to update the files: {}": SENTENCE,
    },
    "steps/publication/manual_ways.py": {
        "git cherry-pick would fit, but for what is not committed: {}": SENTENCE,
        "git cherry-pick {}..{} would stop: {}": SENTENCE,
        "redfirst resume {} --onto {}": "tests/e2e/test_branch_moved.py executes it",
    },
    "verification/claims.py": {
        "git fetch REMOTE 'refs/redfirst/runs/*:refs/redfirst/runs/*'": "needs a remote that has the refs",
    },
    "verification/selection.py": {
        "redfirst runs": "executed of an unknown run",
    },
    "views/decoy.py": {
        "git failed in the view: {}": SENTENCE,
        "git failed in the view: {}: {}": SENTENCE,
    },
}

OF_OUTCOMES: Final = {
    "completed/nothing_to_do": "both commands are executed of a run that is done",
    "completed_with_blockers/blockers": "shown and listed as of a run that is done",
    "parked/signing": "needs a signing program: tests/e2e/test_publication_refused.py",
    "parked/regression": 'commands of parked runs, executed in "branch moved"',
    "parked/environment": 'commands of parked runs, executed in "agent unusable"',
    "parked/agent_unavailable": 'commands of parked runs, executed in "agent unusable"',
    "parked/locked": "another process drives the run: tests/e2e/test_signals.py",
    "failed/escape": "tests/e2e/test_escapes.py; commands that only read",
    "failed/evidence_not_reached": 'as "loops exhausted"',
    "failed/cleanup_needed": "commands that only read",
    "cancelled/interrupted": 'tests/e2e/test_signals.py goes on with one; as "driver died"',
    "rejected/issue_not_found": 'executed before a run begins: "no such issue"',
    "rejected/usage": "help alone",
    "rejected/config": "told before a run begins",
    "rejected/bare_repository": 'told before a run begins: "bare"',
    "rejected/untrusted": "told before a run begins",
    "rejected/recipe_invalid": "told before a run begins: tests/workflows",
    "rejected/recipe_not_found": "told before a run begins: tests/workflows",
    "rejected/input_invalid": "told before a run begins: tests/workflows",
    "rejected/disk": "tests/e2e/test_bad_disks.py",
    "rejected/environment": "told before a run begins",
    "rejected/issue_not_todo": "a run that has its claim is not asked",
    "rejected/claimed_elsewhere": 'told before a run begins: "claimed in a linked worktree"',
    "rejected/locked": 'told before a run begins: "a second run in one worktree"',
}
"""What `ACTIONS` has for an outcome and a reason that no situation brings about."""
