"""Lists the files of a folder that its ignore rules match, without using a repository around it."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Final

from pipeline.git.process import run
from pipeline.scratch import scratch_folder

if TYPE_CHECKING:
    from pathlib import Path

_NOBODYS: Final = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def ignored_in(folder: Path) -> frozenset[str]:
    """Return the paths below *folder* that its `.gitignore` files match, tracked or not.

    A folder ends with a slash and stands for all that is in it. Neither a repository in *folder* nor the user's own
    ignore rules are asked: what the project does not say itself is somebody's work.

    Raises:
        OSError: git cannot tell.
    """
    with scratch_folder("ignored") as empty:
        for name in ("objects", "refs"):
            (empty / name).mkdir()
        (empty / "HEAD").write_text("ref: refs/heads/none\n", encoding="utf-8")
        argv = ("ls-files", "--others", "--ignored", "--exclude-per-directory=.gitignore", "--directory", "-z")
        done = run(folder, argv, {**_NOBODYS, "GIT_DIR": str(empty), "GIT_WORK_TREE": str(folder)})
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise OSError(errno.EIO, f"git cannot tell what is ignored here: {said}", str(folder))
    return frozenset(os.fsdecode(name) for name in done.stdout.split(b"\0") if name)
