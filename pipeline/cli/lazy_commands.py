"""Loads a command when it is asked for: what is not used costs nothing at the start.

A `LazyCommand` stands in a group under the command's name with its one line of help, so that the help of the whole
program needs none of the modules. A test holds each line to the first sentence of the command itself.
"""

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
    from collections.abc import Callable, Iterable, Mapping, Sequence

_TYPE: Final = re.compile(r" <[^|]*>$|[{}]")
_WHOLE: Final = 1000
"""Letters of a line of help that are never reached: no sentence is cut."""
_SENTENCE_END: Final = re.compile(r"(?<=\.) ")


class LazyCommand(TyperCommand):
    """A command, or a group of them, whose module is imported when a context for it is made.

    Args:
        name: What the user types.
        place: `module:attribute` of the function or of the `Typer` application.
        words: Its first sentence.
        below: What an application gets besides its own commands.
    """

    def __init__(self, name: str, place: str, words: str, below: Iterable[LazyCommand] = ()) -> None:
        super().__init__(name, help=words, short_help=words, rich_markup_mode=None)
        self.place = place
        self.below = tuple(below)

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
        command = group_of(above).commands[str(self.name)]
        for one in self.below:
            cast("TyperGroup", command).add_command(one)
        return cast("TyperCommand | TyperGroup", command)

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Return a context of the command itself, which is what then runs, completes and prints its help."""
        return self.load().make_context(info_name, args, parent=parent, **extra)


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
    _show_examples(group)
    _show_first_sentences(group)
    _show_plain_names(group)
    return group


def _show_first_sentences(command: TyperCommand | TyperGroup) -> None:
    """Let the lists of commands show first sentences whole: what has no short help is cut at the width."""
    paragraph = " ".join((command.help or "").partition("\n\n")[0].split())
    command.short_help = _SENTENCE_END.split(paragraph)[0]
    for below in getattr(command, "commands", {}).values():
        _show_first_sentences(below)


def _show_plain_names(command: TyperCommand | TyperGroup) -> None:
    """Let arguments be shown by the word that stands for them alone: no type of Python, no brackets of the library's.

    Words that are accepted, `<red|green>`, stay.
    """
    for param in command.params:
        if isinstance(param, TyperArgument):
            given = (param.get_help_record, param.get_usage_pieces)
            plain: Any = param
            plain.get_help_record, plain.get_usage_pieces = (partial(_plain, each) for each in given)
    for below in getattr(command, "commands", {}).values():
        _show_plain_names(below)


def _plain(asked: Callable[[Any], Sequence[str] | None], ctx: Any) -> Sequence[str] | None:
    """Return what the library says of an argument, with the first of its words as a person reads it."""
    told = asked(ctx)
    return (_TYPE.sub("", told[0]), *told[1:]) if told else told


def _show_examples(command: TyperCommand | TyperGroup) -> None:
    """Move the examples of a command, and of those below it, from its text to the end of its help, a line each."""
    text, told, block = (command.help or "").partition("\nExamples:\n")
    if told:
        lines = [line.strip() for line in block.splitlines() if line.strip()]
        command.help = text.rstrip()
        command.epilog = "\n  ".join(["\b\nExamples:", *lines])  # what follows \b is not wrapped
    for below in getattr(command, "commands", {}).values():
        _show_examples(below)
