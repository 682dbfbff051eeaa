"""What the source advises and no situation of `tests/e2e/next_table.py` executes: the reason of each, by module."""

from __future__ import annotations

from typing import Final

SENTENCE: Final = "a sentence for a person, no command"
DESK: Final = "tests/e2e/test_human_roles.py, tests/cli/test_hand_in_cli.py: a person works at a desk"
NETWORK: Final = "what it installs comes from the network"
DEMO: Final = "tests/e2e/test_demo.py executes it"
TRUST: Final = "tests/cli/test_trust_cli.py answers it at a terminal"
LISTED: Final = "a command that an agent may run, no advice"
DOCTOR: Final = "of doctor; the preconditions of a run execute the same"

UNEXECUTED: Final[dict[str, dict[str, str]]] = {
    "backends/acp_profiles.py": {
        "npm install -g @agentclientprotocol/claude-agent-acp": NETWORK,
        "npm install -g @google/gemini-cli": NETWORK,
        "npm install -g @zed-industries/codex-acp": NETWORK,
        "npm install -g opencode-ai": NETWORK,
    },
    "backends/claude.py": {
        "npm install -g @anthropic-ai/claude-code": NETWORK,
    },
    "backends/codex.py": {
        "npm install -g @openai/codex": NETWORK,
    },
    "boxes/box.py": {
        'or set sandbox = "none" in your own configuration: then nothing is isolated': SENTENCE,
    },
    "cli/config.py": {
        "redfirst trust": TRUST,
    },
    "cli/desk.py": {
        'cd "$(redfirst desk {} --role {} --print)"': DESK,
        "redfirst desk --print": DESK,
        "redfirst hand-in": DESK,
    },
    "cli/doctor.py": {
        "redfirst doctor --agents": "executed of init",
        "redfirst {}": "the name of the program and its version",
    },
    "cli/dry_run.py": {
        "redfirst trust": "tests/workflows/test_quick.py executes it: a recipe of the repository",
    },
    "cli/errors.py": {
        "report it with the lines above": SENTENCE,
        "report it with {}": SENTENCE,
    },
    "cli/hand_in.py": {
        "fill in a copy of {} and give it with --report FILE": SENTENCE,
        "redfirst abandon RUN": "FILE is a report that a person wrote: tests/cli/test_hand_in_cli.py",
        "redfirst hand-in --report FILE": "FILE is a report that a person wrote: tests/cli/test_hand_in_cli.py",
        "redfirst resume {}": DESK,
    },
    "cli/init.py": {
        "npm install -g @anthropic-ai/claude-code && redfirst init": NETWORK,
        "redfirst demo   # see the whole way with scripted agents": DEMO,
    },
    "cli/issue_lists.py": {
        "redfirst abandon {}": "part of a sentence; the claims of linked worktrees execute it",
        "redfirst show {}": "part of a sentence; the claims of linked worktrees execute it",
    },
    "cli/main.py": {
        "redfirst {}": "the name of the program and its version",
    },
    "cli/report_editor.py": {
        "redfirst hand-in": DESK,
    },
    "cli/run_actions.py": {
        "redfirst resume {}": "tests/e2e/test_signals.py goes on with an interrupted run",
    },
    "config/load.py": {
        "add a table [spares.{}] with at least its backend": SENTENCE,
        "redfirst init   # writes one for the agents that are installed here": NETWORK,
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
        "git log --stat {}": DEMO,
        "redfirst run {}": DEMO,
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
        "git worktree": "of a sentence; the action beside it is executed",
    },
    "git/settings.py": {
        "git does not know who commits. Set it: git config user.name ... and git config user.email ...": SENTENCE,
    },
    "git/values.py": {
        "git {} ended with {}: {}": SENTENCE,
    },
    "languages/javascript/environment.py": {
        "npm install --save-dev {}@latest": NETWORK,
    },
    "languages/javascript/listed_commands.py": {
        "npm run test": LISTED,
        "npm test": LISTED,
    },
    "policy/listed_commands.py": {
        "cd pushd pwd": "a list of words",
    },
    "recipes/plan.py": {
        "redfirst claims the issue": SENTENCE,
        "redfirst puts the commits on the branch": SENTENCE,
    },
    "runs/drafts.py": {
        'redfirst {} --feedback "..."': "part of a sentence; the gates execute it",
    },
    "runs/files.py": {
        "free disk space": SENTENCE,
    },
    "runs/next_actions.py": {
        "git worktree add ../work {branch}": "of an outcome in OF_OUTCOMES",
        "redfirst recipes list": "of an outcome in OF_OUTCOMES",
        "redfirst resume {run} --onto {branch}": "tests/e2e/test_branch_moved.py executes it",
    },
    "runs/preconditions.py": {
        "git switch -c": "of a sentence; the action beside it is executed",
    },
    "runs/records.py": {
        "ls -lR {}": SENTENCE,
    },
    "runs/roster.py": {
        "git refuses to look into {}: {}": SENTENCE,
    },
    "runs/run.py": {
        "git for-each-ref": "of a sentence; the action beside it has its reason",
        "git for-each-ref refs/redfirst/claims": "a damaged run or claim: abandon is executed of other runs",
        "redfirst abandon {}": "a damaged run or claim: abandon is executed of other runs",
        "redfirst {}": "the name of the program and its version",
    },
    "runs/uncommitted.py": {
        "git rev-parse --git-path info/exclude": "part of a command that is executed",
    },
    "service/composition.py": {
        "cd {} && redfirst run {}": "tests/e2e/test_interruptions.py: a signal before the run has begun",
        "redfirst abandon {}": "abandon is executed of runs that are parked and that died",
        "redfirst resume {}": "tests/e2e/test_bad_disks.py: a run whose disk was full goes on",
        "redfirst show {} --log --follow": "tests/e2e/test_signals.py: another process drives the run",
    },
    "service/doctor.py": {
        "git add --all && git commit": DOCTOR,
        "git commit --all": DOCTOR,
        "git commits as {} <{}>": DOCTOR,
        "git is not on PATH": DOCTOR,
        "git switch -c NAME, or redfirst run ISSUE --worktree": DOCTOR,
        "redfirst trust": TRUST,
    },
    "service/dry_run.py": {
        "redfirst init": "tests/workflows: part of a line; init is executed elsewhere",
    },
    "service/gate_edits.py": {
        "redfirst approve {}": "tests/e2e/test_edits_at_gates.py; the gates execute the same",
        'redfirst reject {} --feedback "..."': "tests/e2e/test_edits_at_gates.py; the gates execute the same",
    },
    "service/human_answer.py": {
        "git checkout -- {}": DESK,
        "redfirst run ISSUE --agent ROLE=human": DESK,
        "redfirst runs": DESK,
        "{}   # {}: {}": SENTENCE,
    },
    "service/human_report.py": {
        "fill in a copy of {} and give it with --report FILE": SENTENCE,
    },
    "service/in_the_way.py": {
        "git log {}..{}": "tests/e2e/test_branch_moved.py; commands that only read",
        "git stash": "tests/e2e/test_branch_moved.py types it",
        "git status": "tests/e2e/test_branch_moved.py; commands that only read",
        "redfirst diff {}": "tests/e2e/test_branch_moved.py; commands that only read",
        "redfirst show {}": "tests/e2e/test_branch_moved.py; commands that only read",
    },
    "service/init_config.py": {
        "redfirst config show": "a comment of the file that init writes; executed of init",
        "redfirst hand-in": DESK,
    },
    "service/installed.py": {
        "redfirst agents try": "tests/e2e/test_agents_try.py",
        "redfirst init": NETWORK,
        "redfirst init --agent": "needs a key of a model service: tests/cli/test_init_cli.py",
    },
    "service/isolation.py": {
        "redfirst doctor": "a machine without a box: tests/e2e/test_bad_input.py",
    },
    "service/landing.py": {
        "git -C {} merge {} {}": "executed as `git merge`, where the base is checked out",
        "git fetch . {}": "executed as `git -C WORKTREE fetch`, from another one",
    },
    "service/leftovers.py": {
        "git update-ref -d REF": "REF is one that doctor lists: tests/cli/test_doctor_cli.py",
        "redfirst abandon RUN": "executed of a claim whose worktree is gone",
    },
    "service/meant_run.py": {
        "redfirst runs": "tests/cli/test_meant_run.py; each command is executed elsewhere",
        "redfirst {} {}{}": "tests/cli/test_meant_run.py; each command is executed elsewhere",
    },
    "service/other_worktrees.py": {
        "cd {} && {}": "the frame around a command; what stands in it is executed",
        "git -C {} ": "the frame around a command; what stands in it is executed",
    },
    "service/patches.py": {
        (
            "git no longer has the objects of {} ({}): its ref {} {}. Reports, evidence and journal are still in {}."
        ): "objects that git has pruned; both commands are executed of other runs",
        "redfirst explain {}": "objects that git has pruned; both commands are executed of other runs",
        "redfirst show {}": "objects that git has pruned; both commands are executed of other runs",
    },
    "service/recipe_choice.py": {
        "redfirst recipes list": "tests/workflows/test_quick.py: a recipe of the repository",
        "redfirst trust": "tests/workflows/test_quick.py: a recipe of the repository",
        "redfirst recipes show {}": "tests/workflows/test_commands.py executes it, of other recipes",
    },
    "service/recipe_files.py": {
        "redfirst recipes list": "tests/workflows: a recipe that is not there",
    },
    "service/run_config.py": {
        "redfirst does not run inside one of its own agents (REDFIRST_DEPTH is set).": SENTENCE,
    },
    "service/run_flags.py": {
        "give {} with this command": SENTENCE,
        "redfirst show {}": "tests/e2e/test_flags_of_a_run.py; show is executed in every situation",
    },
    "service/verification_ports.py": {
        "look at what changed, and undo what you did not do": SENTENCE,
        "redfirst doctor": "a dispatch without a run that has broken out: doctor is executed elsewhere",
    },
    "steps/context.py": {
        "redfirst abandon {}": "a damaged run: tests/e2e/test_crash_and_resume.py",
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
        "git cherry-pick {}": "tests/e2e/test_branch_moved.py types the recipe",
        "git cherry-pick {}..{} would stop: {}": SENTENCE,
        "redfirst abandon {}": "tests/e2e/test_branch_moved.py types the recipe",
        "redfirst issue status {} done": "tests/e2e/test_branch_moved.py types the recipe",
        "redfirst resume {} --onto {}": "tests/e2e/test_branch_moved.py executes it",
    },
    "verification/recheck.py": {
        "git for-each-ref": "part of a command for more refs than a test would make",
    },
    "views/decoy.py": {
        "git failed in the view: {}": SENTENCE,
        "git failed in the view: {}: {}": SENTENCE,
    },
}

OF_OUTCOMES: Final = {
    "parked/locked": "no row of the matrix leads there",
    "rejected/bare_repository": 'told before a run begins: "bare"',
    "rejected/recipe_invalid": "told before a run begins: tests/workflows",
    "rejected/recipe_not_found": "told before a run begins: tests/workflows",
    "rejected/input_invalid": "told before a run begins: tests/workflows",
}
"""What `ACTIONS` has for an outcome and a reason that no situation brings about."""
