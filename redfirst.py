"""Console entry point; drops PYTHONPATH so that a target's own `pipeline` or `todo` cannot replace ours (ADR-R1)."""

import os
import sys

_ours = os.path.dirname(os.path.realpath(__file__))
_foreign = {os.path.realpath(part) for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part} - {_ours}
sys.path[:] = [part for part in sys.path if not part or os.path.realpath(part) not in _foreign]


def main() -> None:
    """Run the `redfirst` command line and leave with its exit code."""
    from pipeline.cli.main import run  # noqa: PLC0415  (only after sys.path is mended)

    run()
