"""An honest @make whose task renames, deletes and creates: shop.py to store.py, no old.py, a script, odd contents."""

import json
import os
import sys
from pathlib import Path

asked = json.load(sys.stdin)
os.chdir(asked["workspace"])
Path("shop.py").rename("store.py")
with Path("store.py").open("a", newline="") as store:
    store.write("\n\ndef total(prices):\n    return sum(prices)\n")
Path("old.py").unlink()
Path("notes/größe.txt").parent.mkdir()
Path("notes/größe.txt").write_bytes("Größe: 5 µm\r\nEnde".encode())
Path("notes/empty.txt").write_bytes(b"")
Path("notes/raw.bin").write_bytes(bytes(range(256)))
script = Path("tools/price.sh")
script.parent.mkdir()
script.write_text("#!/bin/sh\nexec python -m store\n")
script.chmod(0o700)
Path(os.environ["REDFIRST_REPORT"]).write_text(json.dumps({"result": "COMPLETE", "summary": "moved"}))
