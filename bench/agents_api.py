"""Plain pydantic-ai on the same model: for each line on stdin one conversation, and its times as a line on stdout.

Nothing is imported before the first one begins, so that its figures are those of a cold start.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


def converse(url: str, prompt: str) -> dict[str, float]:
    """Return when one conversation began and ended."""
    began = time.monotonic()
    from pydantic import BaseModel  # noqa: PLC0415
    from pydantic_ai import Agent  # noqa: PLC0415
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

    class Report(BaseModel):
        result: str
        summary: str

    def read_file(path: str) -> str:
        return Path(path).read_text(encoding="utf-8")

    def edit(path: str, old: str, new: str) -> str:
        Path(path).write_text(read_file(path).replace(old, new, 1), encoding="utf-8")
        return "done"

    model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=f"{url}/v1", api_key="placeholder"))
    agent = Agent(model, output_type=Report, tools=[read_file, edit])
    report = agent.run_sync(prompt).output
    ended = time.monotonic()
    assert report.result == "COMPLETE", report
    return {"began": began, "ended": ended}


if __name__ == "__main__":
    told, service = sys.argv[1:]
    print("ready", flush=True)
    while sys.stdin.readline():
        print(json.dumps(converse(service, told)), flush=True)
