"""Builds what `verify`, `tdd`, `doctor` and `agents try` measure with: box and tests as configured, without a run."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import anyio

from pipeline.agents.dispatch.transcript import secrets_of_run
from pipeline.app.run_config import file_at_head, uncounted
from pipeline.app.trust_requests import toolchain_of, widening_in
from pipeline.config import trust
from pipeline.config.load import load
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.repo import Repository, UntouchedRepository
from pipeline.run.checkout import PrivateCheckout
from pipeline.sandbox.boxes.box import ProvableBox, open_box
from pipeline.sandbox.escapes import EscapeError
from pipeline.scratch import scratch_folder
from pipeline.testing.verification.context import VerificationContext

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from pathlib import Path

    from pipeline.config.model import Config

_OF_AGENTS: Final = ("agents.", "providers.")


@contextmanager
def opened_context(
    here: Path, environ: Mapping[str, str], say: Callable[[str], None]
) -> Generator[VerificationContext]:
    """Lend what measures for the repository around *here*; with it everything is removed that was written.

    Raises:
        UserError: there is no repository with a commit, no box that holds, or the configuration needs trust; or what
            was measured has changed the repository (reason `escape`).
    """
    repository = Repository.find(here)
    if repository.resolve("HEAD") is None:
        raise UserError("The branch has no commit yet.", Reason.USAGE, path=str(repository.worktree))
    config = _config(repository, environ)
    notes = uncounted(repository, environ)
    for note in notes:
        say(note)
    box = anyio.run(open_box, config.sandbox.value)
    with lent_context(repository, config, box, environ, say, notes) as lent:
        yield lent


@contextmanager
def lent_context(
    repository: Repository,
    config: Config,
    box: ProvableBox,
    environ: Mapping[str, str],
    say: Callable[[str], None],
    notes: tuple[str, ...] = (),
) -> Generator[VerificationContext]:
    """Lend what measures for a repository with a commit; with it everything is removed that was written.

    Args:
        repository: What is measured, and must stay as it is.
        config: The configuration; what it asks for is trusted.
        box: Where tests are run.
        environ: The user's environment.
        say: Is told of the progress.
        notes: See `VerificationContext`.

    Raises:
        UserError: what was measured has changed the repository (reason `escape`).
    """
    with scratch_folder("check") as place:
        untouched = UntouchedRepository.of(repository, place / "objects")
        checkout = PrivateCheckout(untouched, place / "checkout")
        try:
            yield VerificationContext(
                repository=untouched,
                checkout=checkout,
                config=config,
                box=box,
                toolchain=toolchain_of(repository, config, "HEAD"),
                search_path=environ.get("PATH", os.defpath),
                environ=environ,
                say=say,
                secrets=secrets_of_run(repository.worktree, environ, config),
                notes=notes,
            )
        except EscapeError as error:
            raise UserError(
                f"{error}. Look at what changed, and undo what you did not do.",
                Reason.ESCAPE,
                path=str(repository.common_dir),
                details=error.escape.document(),
                actions=("redfirst doctor",),
            ) from error
        finally:
            checkout.close()  # also what tests left without permissions


def _config(repository: Repository, environ: Mapping[str, str]) -> Config:
    """Return the configuration of HEAD; agents may be missing or untrusted, since none is asked."""
    loaded = load(repository.worktree, environ=environ, repo_file=file_at_head(repository))
    widening = widening_in(repository, loaded, environ)
    if any(not item.key.startswith(_OF_AGENTS) for item in widening):
        trust.require_trust(widening, repository.common_dir, environ)
    return loaded.config
