"""Lists the commands, and loads each when it is asked for: what is not used costs nothing at the start."""

from __future__ import annotations

import re
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from pipeline.interrupts import StoppedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


_TYPE: Final = re.compile(r" <[^|]*>$|[{}]")
_WHOLE: Final = 1000
"""Letters of a line of help that are never reached: no sentence is cut."""
WORDS: Final = "redfirst.words"
"""The key in a context's `meta` of the words behind the command's name."""
_SENTENCE_END: Final = re.compile(r"(?<=\.) ")


class LazyCommand(TyperCommand):
    """A command, or a group of them, whose module is imported when a context for it is made.

    Args:
        name: What the user types.
        place: `module:attribute` of the function or of the `Typer` application.
        words: Its first sentence.
    """

    def __init__(self, name: str, place: str, words: str) -> None:
        super().__init__(name, help=words, short_help=words, rich_markup_mode=None)
        self.place = place

    def load(self) -> TyperCommand | TyperGroup:
        """Return the command itself."""
        module, _, attribute = self.place.partition(":")
        found: object = getattr(import_module(module), attribute)
        above = typer.Typer(rich_markup_mode=None, add_completion=False)
        above.callback()(_nothing)  # with a callback it is a group, however many commands it has
        if isinstance(found, typer.Typer):
            above.add_typer(found, name=self.name)
        else:
            above.command(self.name)(cast("Callable[..., object]", found))
        return cast("TyperCommand | TyperGroup", group_of(above).commands[str(self.name)])

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Return a context of the command itself, which is what then runs, completes and prints its help."""
        words = tuple(args)
        context = self.load().make_context(info_name, args, parent=parent, **extra)
        context.meta[WORDS] = words
        return context


class Program(TyperGroup):
    """The whole command line; `panels` names the commands of each panel of its help."""

    panels: Mapping[str, Sequence[str]] = MappingProxyType({})

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, a panel each for what somebody wants."""
        del ctx
        for panel, names in self.panels.items():
            with formatter.section(panel):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(limit=_WHOLE)) for name in names])

    def invoke(self, ctx: Any) -> Any:
        """Run the command.

        Raises:
            StoppedError: it was interrupted.
        """
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise StoppedError from error


def _nothing() -> None:
    """Stand where an application's own options would be."""


def group_of(app: typer.Typer) -> TyperGroup:
    """Return the group that *app* describes; the examples of each command are lines that can be copied."""
    group = cast("TyperGroup", typer.main.get_command(app))
    _mend_help(group)
    return group


def _mend_help(command: TyperCommand | TyperGroup) -> None:
    """Let the help of a command, and of those below it, be read as it is meant.

    Examples are moved from the text to the end, a line each. The lists of commands show first sentences whole: what has
    no short help is cut at the width. Arguments are shown by the word that stands for them alone: no type of Python, no
    brackets of the library's; words that are accepted, `<red|green>`, stay.
    """
    text, told, block = (command.help or "").partition("\nExamples:\n")
    if told:
        lines = [line.strip() for line in block.splitlines() if line.strip()]
        command.help = text.rstrip()
        command.epilog = "\n  ".join(["\b\nExamples:", *lines])  # what follows \b is not wrapped
    paragraph = " ".join((command.help or "").partition("\n\n")[0].split())
    command.short_help = _SENTENCE_END.split(paragraph)[0]
    for param in command.params:
        if isinstance(param, TyperArgument):
            given = (param.get_help_record, param.get_usage_pieces)
            plain: Any = param
            plain.get_help_record, plain.get_usage_pieces = (partial(_plain, each) for each in given)
    for below in getattr(command, "commands", {}).values():
        _mend_help(below)


def _plain(asked: Callable[[Any], Sequence[str] | None], ctx: Any) -> Sequence[str] | None:
    """Return what the library says of an argument, with the first of its words as a person reads it."""
    told = asked(ctx)
    return (_TYPE.sub("", told[0]), *told[1:]) if told else told


_PANELS: Final[dict[str, tuple[tuple[str, str, str], ...]]] = {
    "First steps": (
        ("demo", "servers:demo", "Make a small repository and take an example issue to commits, with scripted agents."),
        ("init", "init:init", "Write a starting redfirst.toml for the agents that are installed here."),
        (
            "doctor",
            "doctor:doctor",
            "Check whether a run can begin here: git, the sandbox, the tests, the configuration, the agents.",
        ),
        ("trust", "config:trust", "Show what this repository asks for, and allow it."),
        ("issue", "issue:app", "File, read and change the issues of the repository."),
    ),
    "Work": (
        ("run", "run:run", "Take an issue to tested commits, or run a recipe."),
        ("resume", "answers:resume", "Go on with a run that is paused, parked, partial or crashed."),
        ("stop", "answers:stop", "Stop a run that another process drives."),
        ("abandon", "answers:abandon", "End a run without a commit."),
        ("queue", "queue:app", "Order issues that `redfirst work` is to run."),
        ("work", "queue:work", "Run what is in the queue, several orders at once."),
        ("fleet", "fleet:app", "Let several machines work on one queue, and share runs."),
        (
            "deliver",
            "queue:deliver",
            "Hand a delivery to a trigger: a webhook's headers, and its body on standard input.",
        ),
        ("trigger", "queue:triggers", "Show what orders runs from outside."),
    ),
    "Look and answer": (
        ("runs", "runs:runs", "List the runs of all worktrees, the newest first."),
        ("show", "show:show", "Show how a run stands and what you can do next, in 20 lines."),
        ("diff", "show:diff", "Show the work of a run so far, as a patch against its start."),
        ("watch", "watch:watch", "Watch a run for as long as a process drives it."),
        ("console", "servers:console", "Show the runs of this repository in a browser on this machine."),
        ("explain", "explain:explain", "Say why a run stands where it does, in 20 lines."),
        ("approve", "answers:approve", "Let a run go on from the approval point where it waits for you."),
        ("reject", "answers:reject", "Send a run back from the approval point where it waits for you."),
        ("answer", "answers:answer_question", "Answer the question that a run waits with."),
        ("desk", "desk:desk", "Go to the desk where a run waits for your work."),
        ("hand-in", "desk:hand_in", "Hand in what you did at a desk, so that the run goes on."),
    ),
    "Finish": (
        ("land", "land:land", "Put the commits of finished runs on their base, and measure each again there."),
        ("verify", "verify:verify", "Check again that the tests of a commit fail before it and pass in it."),
        ("gc", "land:gc", "Show what runs have left behind that nobody needs any more."),
    ),
    "Make it yours": (
        ("config", "config:app", "Show and change the configuration."),
        ("agents", "agents:app", "Show the roles, what they may do, and by which rule."),
        ("recipes", "recipes:app", "List, check and show recipes: workflows that are written in a file."),
        ("tdd", "verify:app", "Measure RED and GREEN of what you wrote, without any agent."),
        ("events", "watch:events", "Print what happens in runs and to orders, as one CloudEvent a line."),
        ("notify", "watch:notify", "Send what happens in runs to the commands and addresses of `[notify]`."),
        ("export-traces", "watch:export_traces", "Send a run to a collector of OpenTelemetry, as one trace."),
        ("mcp", "servers:mcp", "Serve recipes to an agent of another program, by the Model Context Protocol."),
        ("schema", "schema:schema", "Print the JSON Schema of a document."),
        ("routes", "routes:routes", "Print the routing matrix: what follows what, how often, and what then."),
        ("simulate", "routes:simulate", "Walk the routing matrix with signals from a file."),
    ),
}
"""The commands as the help shows them: by what somebody wants, in the order in which a new user needs them."""

LAZY_COMMANDS: Final = [
    LazyCommand(name, f"pipeline.faces.cli.{place}", words) for rows in _PANELS.values() for name, place, words in rows
]
"""Each module is imported when its command is asked for."""
PANELS: Final = {panel: tuple(name for name, _, _ in rows) for panel, rows in _PANELS.items()}
