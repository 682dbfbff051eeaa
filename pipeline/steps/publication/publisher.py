"""Names who publishes: the run of an issue, or one step of a recipe's run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pipeline.runs.events import Published, PublishIntended

if TYPE_CHECKING:
    from pipeline.git import Repository
    from pipeline.runs.spending import AnyRun


class Publisher(Protocol):
    """What a publication needs. The `Context` of an issue's run has it, and so has `RecipeContext`."""

    @property
    def run(self) -> AnyRun: ...  # noqa: D102  (as the contexts say)
    @property
    def repository(self) -> Repository: ...  # noqa: D102
    @property
    def publication(self) -> str | None:
        """Return which one of a run's publications this is; None where a run has one."""
        ...


@dataclass(frozen=True)
class Given:
    """A run that publishes nothing more: what its publications left half done may be taken back."""

    run: AnyRun
    repository: Repository
    publication: None = None


def intended(ctx: Publisher) -> list[PublishIntended]:
    """Return what this publication was to bring to the branch, whenever it was tried; the last one counts."""
    return [line.data for line in ctx.run.journal.of(PublishIntended) if line.data.publication == ctx.publication]


def under_way(ctx: Publisher) -> bool:
    """Return whether the run began to publish something that it has not brought to its end, this or another time."""
    begun = ctx.run.journal.of(PublishIntended)
    ended = {line.data.publication for line in ctx.run.journal.of(Published)}
    return bool(begun) and begun[-1].data.publication not in ended


def since(ctx: Publisher) -> str:
    """Return the commit that others may have committed on since: where the run began, or what it published last."""
    info, repository = ctx.run.info, ctx.repository
    before = [line.data for line in ctx.run.journal.of(Published) if line.data.publication != ctx.publication]
    last = before[-1].commits[-1] if before else info.start_commit
    tip = repository.resolve(f"refs/heads/{info.branch}")
    return last if tip is not None and repository.is_ancestor(last, tip) else info.start_commit


def note_published(ctx: Publisher) -> PublishIntended:
    """Say once in the journal that the branch holds what was intended last; return that."""
    said = intended(ctx)[-1]
    known = (line.data.publication for line in ctx.run.journal.of(Published))
    if ctx.publication not in known:
        which = {} if ctx.publication is None else {"publication": ctx.publication}
        branch = ctx.run.info.branch
        ctx.run.journal.append(Published.model_validate({"branch": branch, "commits": said.commits, **which}))
    return said
