"""An agent that knows the answers: finds the one that fits what it is asked, makes its edits, reports.

Usage: known_answer.py ANSWERS.json. Each answer: {"when": {...}, "edits": [[path, old, new], ...], "report": {...}};
`old` occurs once in the file, or is empty to append (which makes the file if need be).
"""

import json
import os
import sys
from pathlib import Path


def main() -> None:
    asked = json.load(sys.stdin)
    for answer in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
        if all(asked[key] == value for key, value in answer["when"].items()):
            break
    else:
        sys.exit(f"no answer to {asked['kind']} of {asked['role']}")
    for name, old, new in answer.get("edits", []):
        path = Path(asked["workspace"], name)
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if old and text.count(old) != 1:
            sys.exit(f"{name} has {text.count(old)} places like {old!r}")
        path.write_text(text.replace(old, new) if old else text + new, encoding="utf-8")
    Path(os.environ["REDFIRST_REPORT"]).write_text(json.dumps(answer["report"]), encoding="utf-8")


main()
