"""A model that plays false: it has the agent's hands, and what the agent says of itself is its word, too."""

from __future__ import annotations

import json
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from crashes import processes_of
from e2e.real_agents import results
from kit import Project, make_project

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

pytestmark = pytest.mark.slow

GREEDY = """\
import json, os, sys, urllib.error, urllib.request

def ask(model):
    body = json.dumps({"model": model, "messages": []}).encode()
    url = os.environ["REDFIRST_MODEL_URL"] + "/v1/chat/completions"
    wanted = urllib.request.Request(url, body, {"content-type": "application/json"})
    try:
        urllib.request.urlopen(wanted).read()
    except urllib.error.HTTPError as error:
        return error.code

for _ in range(9):
    ask("good")
ask("no such model")
sys.exit(1)
"""
"""Takes all but one of ten thousand tokens, and then makes the service look as if it were out of reach."""


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if body["model"] != "good":
            return self._answer(404, {"error": {"message": "no such model"}})
        usage = {"prompt_tokens": 900, "completion_tokens": 100}
        return self._answer(200, {"object": "chat.completion", "model": "good", "choices": [], "usage": usage})

    def _answer(self, status: int, document: dict[str, Any]) -> None:
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the base class says it)
        """Say nothing."""


@contextmanager
def service() -> Generator[str]:
    """Yield the URL of a model service that counts a thousand tokens for each answer."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def played_by(project: Project, program: str, tmp_path: Path, lines: str, *, top: str = "") -> None:
    """Let every role be played by *program*, a Python text."""
    folder = tmp_path / "agent"
    folder.mkdir()
    (folder / "agent.py").write_text(program, encoding="utf-8")
    argv = json.dumps([sys.executable, str(folder / "agent.py")])
    project.configure(f'{top}\n[agents]\nargv = {argv}\nread = ["{folder}"]\n{lines}\n')


@pytest.mark.broad
def test_an_outage_gives_nobody_a_second_share_of_the_budget(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    with service() as url:
        played_by(
            project,
            GREEDY,
            tmp_path,
            f'backend = "command"\nnetwork = "model"\nprovider = "loop"\n[providers.loop]\nurl = "{url}"',
            top="[budget]\ntokens = 10000\n[outage]\nbackoff_s = [0, 0, 0]",
        )
        document = project.run()
    assert (document["_code"], document["reason"]) == (5, "budget"), document["note"]
    (result,) = results(project)
    taken = [count["input"] + count["output"] for count in result["model_traffic"]["by_model"].values()]
    assert sum(taken) <= 10_000
    assert len(result["tries"]) == 1
    assert processes_of(project) == {}


PEER = """\
import json, sys

def send(number, **what):
    print(json.dumps({"jsonrpc": "2.0", "id": number, **what}), flush=True)

for line in sys.stdin:
    asked = json.loads(line)
    match asked.get("method"):
        case "initialize":
            send(asked["id"], result={"protocolVersion": 1, "agentCapabilities": {}})
        case "session/new":
            send(asked["id"], result={"sessionId": "s"})
        case "session/prompt":
            send(asked["id"], ANSWER)
"""
ANSWERS = {
    "half a letter": 'error={"code": -1, "message": "\\ud800 \\x1b]0;owned\\x07"}',
    "no such shape": 'result={"stopReason": "end_turn", "_meta": {"quota": "much"}}',
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
@pytest.mark.broad(but_first=1)
def test_whatever_an_agent_says_of_the_protocol_is_no_bug_of_ours(answer: str, tmp_path: Path) -> None:
    project = make_project(tmp_path)
    text = PEER.replace("ANSWER", answer)
    played_by(project, text, tmp_path, 'backend = "acp"\nprofile = "custom"\nnetwork = "none"')
    document = project.run()
    assert (document.get("_code"), document.get("reason")) == (4, "agent_unusable"), document
    assert "\x1b" not in document["_stderr"]
