"""Runs readers of untrusted sources in a child process with limits on size, depth, time and memory (ADR-R93).

`limited(reader)(path, text)` is `reader(path, text)`, but for a source that no reader gets through: then it raises
`UnreadableError`, and the child that was at it is dead. Who asks says what that means; it is never "nothing found".
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

from pipeline.sandbox.limited.process import UnreadableError, ask

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["UnreadableError", "limited"]

_Args = ParamSpec("_Args")
_Found = TypeVar("_Found")


def limited(reader: Callable[_Args, _Found]) -> Callable[_Args, _Found]:
    """Return the reader wrapped so that each call runs in the child process.

    Args:
        reader: A function at the top of a module of ours, without side effects. It takes what can be pickled and
            returns what `limited.values` can write down.

    Returns:
        The same function. It raises `UnreadableError` where the reader reaches a limit, or fails.
    """

    @wraps(reader)
    def read(*args: _Args.args, **kwargs: _Args.kwargs) -> _Found:
        return cast("_Found", ask(reader.__module__, reader.__qualname__, args, kwargs))

    return read
