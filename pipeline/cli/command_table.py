"""Lists the commands that are loaded when they are asked for: name, function or application, help."""

from __future__ import annotations

from typing import Final

from pipeline.cli.lazy_commands import LazyCommand

_COMMANDS: Final = (
    ("runs", "runs:runs", "List the runs of all worktrees, the newest first."),
    ("show", "show:show", "Show how a run stands and what you can do next, in 20 lines."),
    ("explain", "explain:explain", "Say why a run stands where it does, in 20 lines."),
    ("stop", "stop:stop", "Stop a run that another process drives."),
    ("diff", "diff:diff", "Show the work of a run so far, as a patch against its start."),
    ("events", "events:events", "Print what happens in runs and to orders, as one CloudEvent a line."),
    ("watch", "watch:watch", "Watch a run for as long as a process drives it."),
    ("console", "console:console", "Show the runs of this repository in a browser on this machine."),
    ("queue", "queue:app", "Order issues that `redfirst work` is to run."),
    ("work", "work:work", "Run what is in the queue, several orders at once."),
    ("issue", "issue:app", "File, read and change the issues of the repository."),
    ("agents", "agents:app", "Show the roles, what they may do, and by which rule."),
    (
        "agents try",
        "agents_try:try_agent",
        "Ask one role once, as a run would, and say what the permission gate makes of it.",
    ),
    ("verify", "verify:verify", "Check again that the tests of a commit fail before it and pass in it."),
    ("land", "land:land", "Put the commits of finished runs on their base, and measure each again there."),
    ("gc", "gc:gc", "Show what runs have left behind that nobody needs any more."),
    ("tdd", "tdd:app", "Measure RED and GREEN of what you wrote, without any agent."),
    ("routes", "routes:routes", "Print the routing matrix: what follows what, how often, and what then."),
    ("simulate", "routes:simulate", "Walk the routing matrix with signals from a file."),
    ("desk", "desk:desk", "Go to the desk where a run waits for your work."),
    ("recipes", "recipes:app", "List, check and show recipes: workflows that are written in a file."),
    ("recipes save", "recipes_written:save", "Write the recipe of a run as one of yours, to be run again."),
    (
        "recipes new",
        "recipes_written:new",
        "Write a recipe to begin with, or one that asks what a skill or a prompt says.",
    ),
    ("mcp", "mcp:mcp", "Serve recipes to an agent of another program, by the Model Context Protocol."),
    ("hand-in", "hand_in:hand_in", "Hand in what you did at a desk, so that the run goes on."),
    ("init", "init:init", "Write a starting redfirst.toml for the agents that are installed here."),
    (
        "doctor",
        "doctor:doctor",
        "Check whether a run can begin here: git, the sandbox, the tests, the configuration, the agents.",
    ),
    ("trust", "trust:trust", "Show what this repository asks for, and allow it."),
    ("config", "config:app", "Show and change the configuration."),
    ("schema", "schema:schema", "Print the JSON Schema of a document."),
)


def _below(group: str) -> list[LazyCommand]:
    """Return the commands of a group, by its name and a space; of the program without."""
    return [
        LazyCommand(name.removeprefix(group), f"pipeline.cli.{place}", words, _below(f"{name} "))
        for name, place, words in _COMMANDS
        if name.rpartition(" ")[0] == group.rstrip()
    ]


LAZY_COMMANDS: Final = _below("")
"""The commands that `main` does not define; each module is imported when its command is asked for."""

PANELS: Final[dict[str, tuple[str, ...]]] = {
    "First steps": ("demo", "init", "doctor", "trust", "issue"),
    "Work": ("run", "resume", "stop", "abandon", "queue", "work"),
    "Look and answer": (
        *("runs", "show", "diff", "watch", "console", "explain"),
        *("approve", "reject", "answer", "desk", "hand-in"),
    ),
    "Finish": ("land", "verify", "gc"),
    "Make it yours": ("config", "agents", "recipes", "tdd", "events", "mcp", "schema", "routes", "simulate"),
}
"""The commands as the help shows them: by what somebody wants, in the order in which a new user needs them."""
