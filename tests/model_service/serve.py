"""The scripted model as a program, for benches: `serve.py --script FILE --port-file FILE --log FILE`."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path


def main() -> None:
    """Serve until SIGTERM or SIGINT; the port file appears once the service listens."""
    from model_service.script import load_script
    from model_service.service import ModelService

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--script", type=Path, required=True)
    parser.add_argument("--port-file", type=Path, required=True)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--secret")
    options = parser.parse_args()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    with ModelService(load_script(options.script), secret=options.secret, log=options.log) as service:
        ready = options.port_file.with_suffix(".part")
        ready.write_text(service.url.rpartition(":")[2], encoding="ascii")
        ready.replace(options.port_file)
        signal.sigwait({signal.SIGTERM, signal.SIGINT})
    sys.exit("\n".join(service.problems) or 0)


if __name__ == "__main__":
    # The folder of this file is no place to import from: its modules are named after APIs.
    sys.path[0] = str(Path(__file__).parents[1])
    main()
