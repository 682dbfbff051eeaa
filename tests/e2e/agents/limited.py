"""An agent that asks its model once and gives up where that answers with an error; else it plays what it knows.

Usage: limited.py SCRIPT.json, with entries {"when": {...}, "report": {...}} as a scripted agent has them.
"""

import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path


def main() -> None:
    asked = json.load(sys.stdin)
    body = {"model": "m", "messages": [{"role": "user", "content": asked["prompt"]}]}
    request = urllib.request.Request(  # noqa: S310  (the gateway, on loopback)
        os.environ["REDFIRST_MODEL_URL"].rstrip("/") + "/v1/chat/completions",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json", "authorization": "Bearer x"},
    )
    try:
        with urllib.request.urlopen(request) as answer:  # noqa: S310  (the same)
            answer.read()
    except urllib.error.HTTPError as error:
        sys.exit(f"the service said {error.code}: {error.read().decode()}")
    for entry in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
        if all(asked[key] == value for key, value in entry["when"].items()):
            Path(os.environ["REDFIRST_REPORT"]).write_text(json.dumps(entry["report"]), encoding="utf-8")
            return


main()
