"""The same gateway on a socket file in a folder that only its owner can enter."""

from __future__ import annotations

import socket
import stat
from typing import TYPE_CHECKING

import anyio
import pytest
from gateway.answers import ANTHROPIC_TOOK, ANTHROPIC_WHOLE
from gateway.box import SECRET, provider, read_reply
from gateway.upstream import Answer, upstream
from pydantic import SecretStr

from pipeline.gateway.proxy import ModelGateway

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

REQUEST = b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_requests_come_through_a_socket_file(tmp_path: Path) -> None:
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    place = folder / "model.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place))
    listener.listen()
    log = tmp_path / "model.jsonl"
    async with upstream(Answer((ANTHROPIC_WHOLE,)), Answer()) as model:
        gateway = ModelGateway(provider(model.url), SecretStr(SECRET), log)
        async with gateway.serve(listener):
            async with await anyio.connect_unix(place) as stream:
                await stream.send(REQUEST)
                reply = await read_reply(stream)
            async with await anyio.connect_unix(place) as stream:
                await stream.send(REQUEST.replace(b"messages", b"files"))
                refused = await read_reply(stream)
        with pytest.raises(OSError, match="onnect"):
            await anyio.connect_unix(place)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (reply.status, reply.body, reply.whole) == (200, ANTHROPIC_WHOLE, True)
    assert (refused.status, refused.error["code"]) == (403, "path")
    assert model.requests[0].all("x-api-key") == [SECRET]
    assert gateway.use.spent.by_model == {ANTHROPIC_TOOK[0]: ANTHROPIC_TOOK[1]}


async def test_a_service_without_credential_is_given_none(tmp_path: Path) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port: int = listener.getsockname()[1]
    async with upstream(Answer()) as model:
        gateway = ModelGateway(provider(model.url, credential_env=None), None, tmp_path / "model.jsonl")
        async with gateway.serve(listener), await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(
                REQUEST.replace(b"\r\n\r\n", b"\r\nAuthorization: Bearer mine\r\nx-api-key: mine\r\n\r\n")
            )
            reply = await read_reply(stream)
    assert (reply.status, reply.body) == (200, b'{"ok": true}')
    assert {name for name, _ in model.requests[0].headers} == {
        "host",
        "accept-encoding",
        "connection",
        "content-length",
    }
