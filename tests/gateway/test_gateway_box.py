"""A command in the real box: it reaches its model and nothing else, and finds no credential."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from gateway.box import SECRET, provider
from gateway.upstream import Answer, upstream
from pydantic import SecretStr
from waiting import longer_limits

from pipeline.agents.gateway.proxy import ModelGateway
from pipeline.agents.gateway.spending import GatewayUse, Spent
from pipeline.process import Command
from pipeline.programs import locate
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap

BWRAP = shutil.which("bwrap")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.anyio,
    pytest.mark.skipif(BWRAP is None, reason="bubblewrap is not installed"),
]

AGENT = """
import http.client, json, os, socket, sys

def ask(method, path, body=None):
    connection = http.client.HTTPConnection(address, timeout=10)
    connection.request(method, path, body, {"x-api-key": "placeholder"})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()

def reaches(host, port):
    try:
        socket.create_connection((host, port), 1).close()
    except OSError:
        return False
    return True

address = os.environ["REDFIRST_MODEL_URL"].removeprefix("http://")
host = int(sys.argv[1])
print(json.dumps({
    "model": ask("POST", "/v1/messages", "{}"),
    "elsewhere": ask("POST", "/v1/files", "{}"),
    "host": reaches("127.0.0.1", host),
    "outside": reaches("192.0.2.1", 80),
    "environ": dict(os.environ),
}))
"""


async def test_an_agent_in_the_box_reaches_its_model_and_only_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY", SECRET)
    python = locate(sys.executable)
    with socket.create_server(("127.0.0.1", 0)) as of_the_host:
        async with upstream(Answer((b"hello ", b"agent"))) as model:
            gateway = ModelGateway(provider(model.url), SecretStr(os.environ["THE_KEY"]), tmp_path / "model.jsonl")
            argv = python.argv("-I", "-S", "-c", AGENT, str(of_the_host.getsockname()[1]))
            command = Command(argv, Path("/"), python.mounts, network="model", gateway=gateway)
            ended = await Bubblewrap(str(BWRAP)).run(command)
    assert ended.exit_code == 0, ended.stderr
    seen: dict[str, Any] = json.loads(ended.stdout)
    assert seen["model"] == [200, "hello agent"]
    assert seen["elsewhere"][0] == 403
    assert (seen["host"], seen["outside"]) == (False, False)
    assert SECRET not in json.dumps(seen)
    assert model.requests[0].all("x-api-key") == [SECRET]
    assert gateway.use == GatewayUse(1, 1, bytes_up=2, bytes_down=11, spent=Spent(answers=1, unmetered=1))


async def test_an_agent_that_is_stopped_while_its_model_talks_leaves_nothing_open(tmp_path: Path) -> None:
    python = locate(sys.executable)
    for limit in longer_limits(0.7):
        async with upstream(Answer((b"a", anyio.Event()))) as model:
            gateway = ModelGateway(provider(model.url), SecretStr(SECRET), tmp_path / "model.jsonl")
            argv = python.argv("-I", "-S", "-c", AGENT, "1")
            command = Command(argv, Path("/"), python.mounts, timeout_s=limit, network="model", gateway=gateway)
            assert (await Bubblewrap(str(BWRAP)).run(command)).timed_out
            if model.requests:
                with anyio.fail_after(60):
                    await model.left.wait()
                return
    pytest.fail("it never asked its model")
