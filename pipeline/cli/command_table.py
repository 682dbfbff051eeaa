"""Lists the commands that are loaded when they are asked for: name, module, help."""

from __future__ import annotations

from typing import Final

from pipeline.cli.lazy_commands import LazyCommand

LAZY_COMMANDS: Final = (
    LazyCommand("runs", "pipeline.cli.runs:runs", "List the runs of all worktrees, the newest first."),
    LazyCommand("show", "pipeline.cli.show:show", "Show how a run stands and what you can do next, in 20 lines."),
    LazyCommand("explain", "pipeline.cli.explain:explain", "Say why a run stands where it does, in 20 lines."),
    LazyCommand("stop", "pipeline.cli.stop:stop", "Stop a run that another process drives."),
    LazyCommand("diff", "pipeline.cli.diff:diff", "Show the work of a run so far, as a patch against its start."),
    LazyCommand(
        "events",
        "pipeline.cli.events:events",
        "Print what happens in runs and to orders, as one CloudEvent a line.",
    ),
    LazyCommand("watch", "pipeline.cli.watch:watch", "Watch a run for as long as a process drives it."),
    LazyCommand(
        "console", "pipeline.cli.console:console", "Show the runs of this repository in a browser on this machine."
    ),
    LazyCommand("queue", "pipeline.cli.queue:app", "Order issues that `redfirst work` is to run."),
    LazyCommand("work", "pipeline.cli.work:work", "Run what is in the queue, several orders at once."),
    LazyCommand("issue", "pipeline.cli.issue:app", "File, read and change the issues of the repository."),
    LazyCommand(
        "agents",
        "pipeline.cli.agents:app",
        "Show the roles, what they may do, and by which rule.",
        below=(
            LazyCommand(
                "try",
                "pipeline.cli.agents_try:try_agent",
                "Ask one role once, as a run would, and say what the permission gate makes of it.",
            ),
        ),
    ),
    LazyCommand(
        "verify", "pipeline.cli.verify:verify", "Check again that the tests of a commit fail before it and pass in it."
    ),
    LazyCommand(
        "land",
        "pipeline.cli.land:land",
        "Put the commits of finished runs on their base, and measure each again there.",
    ),
    LazyCommand("gc", "pipeline.cli.gc:gc", "Show what runs have left behind that nobody needs any more."),
    LazyCommand("tdd", "pipeline.cli.tdd:app", "Measure RED and GREEN of what you wrote, without any agent."),
    LazyCommand(
        "routes", "pipeline.cli.routes:routes", "Print the routing matrix: what follows what, how often, and what then."
    ),
    LazyCommand("simulate", "pipeline.cli.routes:simulate", "Walk the routing matrix with signals from a file."),
    LazyCommand("desk", "pipeline.cli.desk:desk", "Go to the desk where a run waits for your work."),
    LazyCommand(
        "recipes",
        "pipeline.cli.recipes:app",
        "List, check and show recipes: workflows that are written in a file.",
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
    LazyCommand("hand-in", "pipeline.cli.hand_in:hand_in", "Hand in what you did at a desk, so that the run goes on."),
    LazyCommand(
        "init", "pipeline.cli.init:init", "Write a starting redfirst.toml for the agents that are installed here."
    ),
    LazyCommand(
        "doctor",
        "pipeline.cli.doctor:doctor",
        "Check whether a run can begin here: git, the sandbox, the tests, the configuration, the agents.",
    ),
    LazyCommand("trust", "pipeline.cli.trust:trust", "Show what this repository asks for, and allow it."),
    LazyCommand("config", "pipeline.cli.config:app", "Show and change the configuration."),
    LazyCommand("schema", "pipeline.cli.schema:schema", "Print the JSON Schema of a document."),
)
"""The commands that `main` does not define; each module is imported when its command is asked for."""

PANELS: Final[dict[str, tuple[str, ...]]] = {
    "First steps": ("demo", "init", "doctor", "trust", "issue"),
    "Work": ("run", "resume", "stop", "abandon", "queue", "work"),
    "Look and answer": (
        "runs",
        "show",
        "diff",
        "watch",
        "console",
        "explain",
        "approve",
        "reject",
        "answer",
        "desk",
        "hand-in",
    ),
    "Finish": ("land", "verify", "gc"),
    "Make it yours": ("config", "agents", "recipes", "tdd", "events", "mcp", "schema", "routes", "simulate"),
}
"""The commands as the help shows them: by what somebody wants, in the order in which a new user needs them."""
