"""Lists the commands that are loaded when they are asked for: name, module, help."""

from __future__ import annotations

from typing import Final

from pipeline.cli.lazy_commands import LazyCommand

LAZY_COMMANDS: Final = (
    LazyCommand("runs", "pipeline.cli.runs:runs", "List the runs of all worktrees, the newest first."),
    LazyCommand("show", "pipeline.cli.show:show", "Show how a run stands, and what can be done next."),
    LazyCommand("explain", "pipeline.cli.explain:explain", "Say why a run stands where it does."),
    LazyCommand("stop", "pipeline.cli.stop:stop", "Stop a run that another process drives; all is kept for resume."),
    LazyCommand("diff", "pipeline.cli.diff:diff", "Show the run's work so far as a patch against its start."),
    LazyCommand(
        "events",
        "pipeline.cli.events:events",
        "Print what happens in runs and to orders as CloudEvents.",
    ),
    LazyCommand("watch", "pipeline.cli.watch:watch", "Watch a run until no process drives it any more."),
    LazyCommand(
        "console", "pipeline.cli.console:console", "Show the runs of this repository in a browser on this machine."
    ),
    LazyCommand("queue", "pipeline.cli.queue:app", "Orders: what is to be run by `redfirst work`."),
    LazyCommand("work", "pipeline.cli.work:work", "Drive what is in the queue, some runs at once."),
    LazyCommand("issue", "pipeline.cli.issue:app", "Read and change the issues in TODO/, without any run."),
    LazyCommand(
        "agents",
        "pipeline.cli.agents:app",
        "The roles: who they are, what they may do, and by which rule.",
        below=(LazyCommand("try", "pipeline.cli.agents_try:try_agent", "Ask one role once, as a run would."),),
    ),
    LazyCommand("verify", "pipeline.cli.verify:verify", "Check again that the tests of a commit were RED before it."),
    LazyCommand(
        "land",
        "pipeline.cli.land:land",
        "Put the commits of finished runs on their base, each verified on what it lands on.",
    ),
    LazyCommand(
        "gc", "pipeline.cli.gc:gc", "Show what runs have left and nobody needs, with the proof; remove it with --apply."
    ),
    LazyCommand("tdd", "pipeline.cli.tdd:app", "Measure RED and GREEN of what you wrote, without any agent."),
    LazyCommand("routes", "pipeline.cli.routes:routes", "Print the routing matrix and its bounds."),
    LazyCommand("simulate", "pipeline.cli.routes:simulate", "Walk the routing matrix with signals from a file."),
    LazyCommand("desk", "pipeline.cli.desk:desk", "Go to the desk where a run waits for you."),
    LazyCommand(
        "recipes",
        "pipeline.cli.recipes:app",
        "Check workflows that are written in a file, and see what they would do.",
        below=(
            LazyCommand(
                "save",
                "pipeline.cli.recipes_written:save",
                "Write the recipe of a run as one of yours, to be run again.",
            ),
            LazyCommand(
                "new",
                "pipeline.cli.recipes_written:new",
                "Write a recipe to begin with, or one that asks what a skill or a prompt says.",
            ),
        ),
    ),
    LazyCommand(
        "mcp", "pipeline.cli.mcp:mcp", "Serve recipes to an agent of another program, by the Model Context Protocol."
    ),
    LazyCommand("hand-in", "pipeline.cli.hand_in:hand_in", "Hand in what you did at a desk, as the backend `human`."),
    LazyCommand(
        "init", "pipeline.cli.init:init", "Write a starting redfirst.toml for the agents that are installed here."
    ),
    LazyCommand("doctor", "pipeline.cli.doctor:doctor", "Check git, the repository, the sandbox, the tests."),
    LazyCommand("trust", "pipeline.cli.trust:trust", "Allow what this repository asks for."),
    LazyCommand("config", "pipeline.cli.config:app", "The configuration."),
    LazyCommand("schema", "pipeline.cli.schema:schema", "Print a JSON Schema; without a name, list what there is."),
)
"""The commands that `main` does not define; each module is imported when its command is asked for."""

PANELS: Final[dict[str, tuple[str, ...]]] = {
    "Run": ("issue", "run", "resume", "stop", "abandon", "queue", "work"),
    "Look": ("runs", "show", "explain", "diff", "watch", "events", "console"),
    "Answer": ("approve", "reject", "answer", "desk", "hand-in"),
    "Land and check": ("land", "verify", "tdd", "gc"),
    "Set up": (
        "init",
        "doctor",
        "trust",
        "config",
        "demo",
        "agents",
        "recipes",
        "routes",
        "simulate",
        "schema",
        "mcp",
    ),
}
"""The commands as the help shows them: by what somebody wants, the most used first."""
