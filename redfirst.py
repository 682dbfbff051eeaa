"""Console entry point; drops PYTHONPATH so that a target's own `pipeline` or `todo` cannot replace ours (ADR-R1).

It drops entries of PATH that are relative or tracked by the repository, too: programs are looked up and started from
within it. So it does with the variables by which a git that runs it as a hook leads to its own repository and index.
"""

import os
import sys

_ours = os.path.dirname(os.path.realpath(__file__))  # noqa: PTH120  (pathlib takes as long as all the rest of this)
_foreign = {os.path.realpath(part) for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part} - {_ours}
sys.path[:] = [part for part in sys.path if not part or os.path.realpath(part) not in _foreign]


def main() -> None:
    """Run the `redfirst` command line and leave with its exit code."""
    if sys.argv[1:] == ["--version"]:  # the one question that scripts ask again and again
        from pipeline import VERSION  # noqa: PLC0415

        print(f"redfirst {VERSION}")  # noqa: T201
        return
    try:
        from pipeline.search_path import clear_git, without_the_repository  # noqa: PLC0415  (only after sys.path is mended)

        clear_git(os.environ)
        if "PATH" in os.environ:
            os.environ["PATH"] = without_the_repository(os.environ["PATH"])
        from pipeline.faces.cli.main import run  # noqa: PLC0415  (the same)

        run()
    except KeyboardInterrupt:  # before there is anybody who tells it
        print("redfirst: Interrupted: nothing was begun.", file=sys.stderr)  # noqa: T201
        sys.exit(130)
