"""An agent that speaks the Agent Client Protocol as it is told, well or badly. It runs alone, in the box.

What it is told is in the file that PLAY names: `hello`, `session` and `resume` say how it answers before the turn, and
`turn` is a list of acts.
It is written by hand: no SDK can be made to misbehave like this.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PLAY: dict[str, Any] = json.loads(Path(os.environ["PLAY"]).read_text(encoding="utf-8"))
SESSION = PLAY.get("id", "session-1")
NUMBERS = itertools.count(1000)


def put(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def send(message: dict[str, Any]) -> None:
    put(json.dumps({"jsonrpc": "2.0", **message}) + "\n")


def update(kind: str, /, **facts: Any) -> None:
    send({"method": "session/update", "params": {"sessionId": SESSION, "update": {"sessionUpdate": kind, **facts}}})


def say(text: str) -> None:
    update("agent_message_chunk", content={"type": "text", "text": text})


def receive() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit(PLAY.get("exit", 0))
    return json.loads(line)


def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a request of ours."""
    number = next(NUMBERS)
    send({"id": number, "method": method, "params": {"sessionId": SESSION, **params}})
    while (heard := receive()).get("id") != number or "method" in heard:
        pass
    return heard


ALL = ("allow_always", "allow_once", "reject_always", "reject_once")


def permission(kind: str | None, options: Sequence[str] = ALL) -> None:
    call = {"toolCallId": "call-9", "title": f"wants to {kind}", **({"kind": kind} if kind else {})}
    choices = [{"optionId": f"the-{option}", "kind": option, "name": option} for option in options]
    say(
        json.dumps(ask("session/request_permission", {"toolCall": call, "options": choices})["result"]["outcome"])
        + "\n"
    )


def use(kind: str, title: str) -> None:
    update("tool_call", toolCallId="call-1", kind=kind, title=title, rawInput={"what": title})
    update("tool_call_update", toolCallId="call-1", status="completed", rawOutput="done it")


def request(method: str, params: dict[str, Any]) -> None:
    say(f"{method}: {ask(method, params).get('error', {}).get('code', 'allowed')}\n")


def huge(length: int) -> None:
    for _ in range(length // 100_000):
        say("x" * 100_000)


def flood(count: int) -> None:
    for number in range(count):
        send({"id": number, "method": "session/request_permission", "params": {}})


def until_told(reason: str) -> dict[str, Any]:
    while receive().get("method") != "session/cancel":
        pass
    return {"result": {"stopReason": reason}}


def think(text: str) -> None:
    update("agent_thought_chunk", content={"type": "text", "text": text})


def describe(kind: str, title: str) -> None:
    update("tool_call", toolCallId="call-9", kind=kind, title=title)


def updated(kind: str, facts: dict[str, Any]) -> None:
    update(kind, **facts)


def line(length: int) -> None:
    put("x" * length + "\n")


def write(path: str, text: str) -> None:
    Path(path).write_text(text, encoding="utf-8")


def report(text: str) -> None:
    write(os.environ["REDFIRST_REPORT"], text)


def count(variable: str) -> None:
    kept = Path(os.environ[variable], "count")
    number = int(kept.read_text(encoding="utf-8")) if kept.exists() else 0
    say(f"{number} times before.\n")
    kept.write_text(str(number + 1), encoding="utf-8")


def kill(number: int) -> None:
    os.kill(os.getpid(), number)


def error(said: dict[str, Any]) -> dict[str, Any]:
    return {"error": said}


def stop(said: dict[str, Any]) -> dict[str, Any]:
    return {"result": said}


ACTS: dict[str, Callable[..., Any]] = {
    **{
        act.__name__: act
        for act in (say, huge, think, count, describe, request, flood, line, write, report, kill, error, stop)
    },
    "call": use,
    "ask": permission,
    "update": updated,
    "raw": put,
    "err": sys.stderr.write,
    "die": sys.exit,
    "hang": time.sleep,
    "until told": until_told,
}
"""What it can do in a turn; what returns a dictionary ends it."""


def turn(prompt: str) -> dict[str, Any]:
    if PLAY.get("echo"):
        say(prompt + "\n")
    for step in PLAY.get("turn", []):
        end: dict[str, Any] | int | None = ACTS[step[0]](*step[1:])
        if isinstance(end, dict):
            return end
    return {"result": {"stopReason": "end_turn"}}


def answer(method: str, params: dict[str, Any]) -> Any:
    match method:
        case "initialize":
            able = PLAY.get("able", {})
            return PLAY.get("hello", {"result": {"protocolVersion": 1, "agentCapabilities": able}})
        case "session/new":
            return PLAY.get("session", {"result": {"sessionId": SESSION, "configOptions": PLAY.get("options", [])}})
        case "session/resume" | "session/load":
            for text in PLAY.get("history", []):
                say(text)
            return PLAY.get("resume", {"result": {}})
        case "session/set_config_option":
            return PLAY.get("set", {"result": {"configOptions": []}})
        case "session/prompt":
            return turn(params["prompt"][0]["text"])
        case _:
            return {"error": {"code": -32601, "message": method}} if method != "session/cancel" else None


def main() -> None:
    put(PLAY.get("first", ""))
    while True:
        heard = receive()
        if "method" in heard and (said := answer(heard["method"], heard.get("params", {}))) is not None:
            if said == "silence":
                continue
            send({"id": heard["id"], **said})


main()
