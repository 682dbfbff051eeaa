"""Advice that no situation of `tests/e2e/next_table.py` executes: the reason of each, by module.

Advice about runs stands in `unexecuted_of_runs.py`.
"""

from __future__ import annotations

from typing import Final

SENTENCE: Final = "a sentence for a person, no command"
DESK: Final = (
    "at a desk: tests/e2e/test_human_roles.py and tests/cli/test_hand_in_cli.py work there with these commands"
)
NETWORK: Final = "what it installs comes from the network"
NO_BOX: Final = "a machine on which no box holds: nothing that a test may change brings it about"
DEMO: Final = "tests/e2e/test_demo.py runs the demo"
LISTED: Final = "a command that an agent may run, no advice"

OF_RECIPES: Final = "a run of a recipe's own steps: tests/workflows/test_runs_of_recipes.py types it"
OF_SAVED: Final = "a recipe that was written: tests/workflows/test_saved_recipes.py types it"
OF_THE_QUEUE: Final = "of the queue: tests/queued types it"

STANDING: Final = "where one stands, from tests/cli/test_standing_cli.py; other situations type the same command"

UNEXECUTED: Final[dict[str, dict[str, str]]] = {
    "runs/landed.py": {"git push {} {}": "it goes to a remote; tests/e2e/test_remote_base.py pushes to one"},
    "cli/issue_new.py": dict.fromkeys(
        ("git add", "git commit -m {}"),
        "one command with the paths of what was filed: tests/cli/test_init_cli.py types it",
    ),
    "routing/refusals.py": {"redfirst resume --agent ROLE": "role and agent are the reader's to name"},
    "service/conventions.py": {"redfirst config show": "cli/init.py says the same, and is typed"},
    "cli/standing.py": dict.fromkeys(
        (
            "git commit --allow-empty -m 'first commit'",
            "git add {} && git commit -m 'configure redfirst'",
            "redfirst config show",
            "redfirst demo",
            "redfirst init",
            "redfirst issue lint",
            "redfirst issue list",
            "redfirst issue new --title TEXT",
            "redfirst land --dry-run",
            "redfirst resume",
            "redfirst run {} --worktree",
            "redfirst runs",
            "redfirst show",
            "redfirst watch",
        ),
        STANDING,
    ),
    "cli/runs.py": {"redfirst runs --all": "it takes fifty runs; tests/runs/test_ended_runs.py lists more"},
    "cli/queue_text.py": {"redfirst show {}": OF_THE_QUEUE},
    "service/detached.py": {"safe_next_actions": "the key of a document; the commands in it are of who wrote it"},
    "queue/orders.py": {"redfirst queue list": OF_THE_QUEUE},
    "service/resting_runs.py": dict.fromkeys(
        ("redfirst resume {}", "redfirst show {}", "redfirst show {} --packet"), OF_THE_QUEUE
    ),
    "cli/recipe_runs.py": {
        "redfirst explain {} -v": OF_RECIPES,
    },
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
        "redfirst doctor": NO_BOX,
    },
    "console/issues.py": {
        "redfirst issue list": "an issue that is not there, on a page: cli/issue.py says the same, and is typed",
        "redfirst issue lint": "a broken tracker, on a page: cli/issue_place.py says the same, and is typed",
    },
    "cli/mcp.py": {
        "redfirst mcp": "an agent's program starts it: tests/workflows/test_mcp.py does",
    },
    "cli/recipes_written.py": {
        "redfirst recipes show {}": OF_SAVED,
    },
    "cli/desk.py": {
        'cd "$(redfirst desk {} --role {} --print)"': "tests/cli/test_hand_in_cli.py types it in a shell",
        "redfirst desk --print": "tests/cli/test_hand_in_cli.py types it in a shell",
        "redfirst hand-in": DESK,
    },
    "measure/outside.py": {
        "redfirst doctor --tests": "typed by tests/e2e/test_outside.py, in a repository whose tests fail in the box",
    },
    "service/doctor_collection.py": {
        "redfirst doctor --tests": "typed by tests/e2e/test_outside.py, in a repository whose tests fail in the box",
    },
    "cli/doctor.py": {
        "redfirst doctor --agents": 'said by doctor itself; the situation "configured" types it in the same repository',
        "redfirst {}": "the name of the program and its version",
    },
    "cli/hand_in.py": {
        "redfirst abandon {}": DESK,
        "redfirst hand-in {} --role {} --report FILE": DESK,
        "redfirst resume {}": DESK,
    },
    "cli/dry_run.py": {
        "redfirst trust": "of a recipe of the repository: tests/workflows/test_quick.py allows one with --yes",
    },
    "cli/init.py": {
        "npm install -g @anthropic-ai/claude-code && redfirst init": NETWORK,
        "redfirst demo   # see the whole way with scripted agents": DEMO,
    },
    "cli/land.py": {
        "redfirst land {}   # this one alone": "one of those that tests/landing lands by their names",
    },
    "cli/main.py": {
        "redfirst {}": "the name of the program and its version",
    },
    "cli/report_editor.py": {
        "redfirst hand-in": DESK,
    },
    "cli/run_actions.py": {
        "redfirst resume {}": (
            "of a run that was interrupted at a terminal: tests/e2e/test_interruptions.py compares it with "
            "GO_ON, then resumes"
        ),
        "redfirst show {}": OF_RECIPES,
    },
    "config/load.py": {
        "redfirst config set toolchains.{}.env.NAME VALUE": "the variable is the user's own",
        "redfirst config show": "cli/init.py says the same, and is typed",
        "redfirst demo   # shows the whole way with scripted agents": DEMO,
        "redfirst init   # writes a configuration for the agents that are installed here": NETWORK,
    },
    "demo/command.py": {
        "cd {} && {} {} {}": DEMO,
        "git log --stat {}": DEMO,
        "redfirst run {}": DEMO,
    },
    "demo/place.py": {
        "git is not installed, or not on PATH.": SENTENCE,
        "git {} failed in {}: {}": SENTENCE,
        "redfirst demo": DEMO,
    },
    "git/process.py": {
        "git cannot write: {}. Make room or mend the permissions, then try again.": SENTENCE,
    },
    "git/repository.py": {
        "git is not installed, or not on PATH.": SENTENCE,
        "git refuses to work in {}: {}": SENTENCE,
        "git ": "how git's own advice begins in what it says",
        "git worktree": 'the start of the command that the situation "bare" types',
    },
    "git/settings.py": {
        "git does not know who commits.": SENTENCE,
    },
    "git/tracked_paths.py": {
        "git cannot tell what is ignored here: {}": SENTENCE,
    },
    "git/values.py": {
        "git fetch --refetch --no-filter": "a partial clone: tests/runs/test_unfit.py types it",
        "git fsck": "git itself fails, and nobody knows why",
        "git status": "git itself fails, and nobody knows why",
        "git {} ended with {}: {}": SENTENCE,
    },
    "languages/javascript/environment.py": {
        "npm install --save-dev {}@latest": NETWORK,
    },
    "languages/javascript/toolchain.py": {
        "npm run test": LISTED,
        "npm test": LISTED,
    },
    "policy/listed_commands.py": {
        "cd pushd pwd": "a list of words",
    },
    "views/decoy.py": {
        "git failed in the view: {}": SENTENCE,
        "git failed in the view: {}: {}": SENTENCE,
    },
}
"""The advice of all other modules: commands, configuration, agents, git."""

OF_OUTCOMES: Final = {
    "parked/locked": "no row of the matrix leads there",
    "partial/steps_open": "of recipes: tests/workflows/test_runs_of_recipes.py",
    "parked/input": "an agent that asks: tests/people/test_questions.py",
    "rejected/stale": "told of an answer: tests/people/test_answers.py",
    "rejected/bare_repository": 'told before a run begins: "bare"',
    "rejected/recipe_invalid": 'told before a run begins: "a recipe of no issue"',
    "rejected/recipe_not_found": 'told before a run begins: "no such recipe"',
    "rejected/input_invalid": 'told before a run begins: "a recipe of no issue"',
}
"""What `ACTIONS` has for an outcome and a reason that no situation brings about."""

_SAYS: Final = "what a person wants to say"
_NAMED: Final = "no issue was named; `redfirst issue ready` lists them"
_BASE: Final = "neither main nor master is there: any branch may be the base"
ONLY_THE_USER_KNOWS: Final[dict[str, str]] = {
    "git branch -m NAME": "a name that a run can write down",
    "git config user.email ADDRESS": "who commits",
    "git config user.name NAME": "who commits",
    "git fetch REMOTE 'refs/redfirst/runs/*:refs/redfirst/runs/*'": "whoever made the commits has the refs",
    "git switch -c NAME": "doctor is asked about no issue",
    "git worktree add ../work BRANCH": "a bare repository has no branch that somebody works on",
    "redfirst init --agent NAME": "an agent that will be installed",
    "redfirst init --agent command --argv PROGRAM": "the program of the user",
    "redfirst issue new --title TITLE": _SAYS,
    "redfirst issue new --title TITLE --edit && git add TODO && git commit -m 'file PROJECT-1'": _SAYS,
    "redfirst issue new --title TITLE --id GAL-1": _SAYS,
    'redfirst reject run-GAL-1 --feedback "..."': _SAYS,
    'redfirst reject run-GAL-1 --to plan --feedback "..."': _SAYS,
    'redfirst reject run-GAL-1 --to split --feedback "..."': _SAYS,
    "redfirst resume run-GAL-1 --set limits.dispatches=NUMBER": "how much it may cost",
    "redfirst run GAL-1 --base REF": _BASE,
    "redfirst run GAL-1 --worktree --base REF": _BASE,
    "redfirst run ISSUE": _NAMED,
    "redfirst run ISSUE --agent ROLE=human": _NAMED,
    "redfirst run ISSUE --base REF": _NAMED,
}
"""Advice with a place for a word, and why the program cannot know it."""
