#!/usr/bin/env python3
"""Make the pictures of README: two pages of the console, from the demo, in the browser that the tests drive.

They are written into docs/img, with a digest of each file that makes these pages: a test says when one of them is
another (`tests/house/test_readme.py`). Look at the pictures before you commit them.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from console.browsing import chromium, serving  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Page

IMAGES: Final = ROOT / "docs" / "img"
DIGESTS: Final = IMAGES / "made-from.txt"
WIDTH: Final = 1400
CONSOLE: Final = ROOT / "pipeline" / "faces" / "console"
TEMPLATES: Final = ("actions", "base", "live", "packet", "parts", "patch", "run", "run_head")
MADE_FROM: Final = (
    *(CONSOLE / "templates" / f"{name}.html" for name in TEMPLATES),
    CONSOLE / "static" / "style.css",
    CONSOLE / "picture.py",
)


def digests() -> str:
    """Return a line for each file that makes the pages: its digest, and where it is."""
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(ROOT).as_posix()}\n" for path in MADE_FROM
    )


def take(page: Page, picture: Path, height: int) -> None:
    """Take a picture of the upper part of a page."""
    page.mouse.move(0, 0)
    page.wait_for_load_state("load")
    page.screenshot(path=picture, clip={"x": 0, "y": 0, "width": WIDTH, "height": height}, animations="disabled")


def play(page: Page, link: str, to: Path) -> None:
    """Begin the issue of the demo, answer at both approval points, and take the pictures on the way."""
    page.set_default_timeout(300_000)
    page.goto(link)
    page.get_by_role("link", name="Issues", exact=True).click()
    page.get_by_role("link", name="Discount codes at the till").click()
    for gate in ("plan", "commit"):
        page.get_by_text(gate, exact=True).click()
    page.get_by_role("button", name="Queue it").click()
    page.get_by_role("button", name="Start a worker").click()
    page.get_by_role("link", name="run-SHOP-1", exact=True).first.click()
    for shown in (None, 1160):
        page.get_by_role("link", name="Review and answer").first.click()
        page.get_by_role("button", name="Approve").wait_for()
        if shown:
            take(page, to / "approval.png", shown)
        page.get_by_role("button", name="Approve").click()
    page.get_by_role("button", name="Put it onto main").wait_for()
    take(page, to / "run.png", 960)


def main() -> None:
    """Make them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--to", type=Path, default=IMAGES, help="the folder (docs/img)")
    to: Path = parser.parse_args().to
    to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="redfirst-demo-") as folder:
        env = {"PATH": os.environ["PATH"], "HOME": folder, "TMPDIR": folder, "LC_ALL": "C.UTF-8"}
        argv = [str(Path(sys.executable).with_name("redfirst")), "demo", f"{folder}/demo", "--console"]
        with serving(argv, env) as (served, link), chromium() as browser:
            size = {"width": WIDTH, "height": 1200}
            page = browser.new_page(viewport=size, color_scheme="light", reduced_motion="reduce")  # pyright: ignore[reportArgumentType]
            play(page, link, to)
            served.send_signal(signal.SIGINT)
            served.communicate(timeout=60)
    (to / DIGESTS.name).write_text(digests(), encoding="utf-8")


if __name__ == "__main__":
    main()
