"""A real browser on the console: the system's Chromium, driven by Playwright."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from console.served import listening

if TYPE_CHECKING:
    from collections.abc import Generator

    from playwright.sync_api import Browser, BrowserContext, Page

    from pipeline.faces.console.guard import Access

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (scripts/system-packages.sh)")
SIZES = ((1400, 900), (400, 800))


@contextmanager
def chromium() -> Generator[Browser]:
    """Lend the system's browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # its own sandbox needs more rights than tests have; what it is held to here is ours
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def let_in(root: Path, *, read_only: bool = False, **how: object) -> Generator[tuple[Page, Access]]:
    """Lend a page of the console that was opened by its link."""
    with listening(root, read_only=read_only) as access, chromium() as browser:
        page = browser.new_context(**how).new_page()  # pyright: ignore[reportArgumentType]
        page.goto(access.link)
        page.wait_for_url(f"{access.origin}/")
        try:
            yield page, access
        except BaseException as error:
            error.add_note(f"{page.url} showed:\n{page.inner_text('body')}")
            raise


@contextmanager
def serving(argv: list[str], env: dict[str, str]) -> Generator[tuple[subprocess.Popen[str], str]]:
    """Lend a process that serves a console, and the link that it prints."""
    with subprocess.Popen(argv, cwd="/", env=env, stdout=subprocess.PIPE, text=True) as served:
        assert served.stdout is not None
        try:
            yield served, next(found[1] for line in served.stdout if (found := re.search(r"once: (\S+)", line)))
        finally:
            served.send_signal(signal.SIGINT)


def heard(context: BrowserContext) -> list[str]:
    """Return the list into which goes what the pages of a context complain about."""
    said: list[str] = []
    context.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    context.on("weberror", lambda error: said.append(str(error.error)))
    return said


def violations(page: Page) -> list[str]:
    """Return what axe finds wrong with a page."""
    import axe_playwright_python

    source = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
    page.evaluate(f"() => {{ {source} }}")
    found = page.evaluate("axe.run()")
    return [f"{one['id']}: {node['html'][:200]}" for one in found["violations"] for node in one["nodes"]]
