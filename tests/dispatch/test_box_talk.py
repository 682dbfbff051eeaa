"""A live conversation with a command, in every box that works here."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from waiting import alive, own_nap

from pipeline.process import Command, Completed, Talk
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap
from pipeline.sandbox.boxes.nobox import NoBox

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from anyio.abc import ByteReceiveStream, ByteSendStream

    from pipeline.sandbox.boxes.box import ProvableBox

BWRAP = shutil.which("bwrap")
needs_bwrap = pytest.mark.skipif(BWRAP is None, reason="bubblewrap is not installed")


@pytest.fixture(params=[pytest.param("bwrap", marks=needs_bwrap), "none"])
def box(request: pytest.FixtureRequest) -> ProvableBox:
    return Bubblewrap(str(BWRAP)) if request.param == "bwrap" else NoBox()


class TalkError(Exception):
    """What a talk may raise."""


def talked(box: ProvableBox, script: str, talk: Talk, *, timeout_s: float = 20) -> Completed:
    return anyio.run(box.run, Command(("/bin/sh", "-c", script), Path("/"), timeout_s=timeout_s, talk=talk))


async def heard(stdout: ByteReceiveStream, length: int) -> bytes:
    said = b""
    while len(said) < length:
        said += await stdout.receive()
    return said


async def to_the_end(stdout: ByteReceiveStream) -> bytes:
    said = b""
    try:
        while True:
            said += await stdout.receive()
    except anyio.EndOfStream:
        return said


@pytest.fixture
def nap() -> str:
    return own_nap()


def test_what_is_said_is_answered(box: ProvableBox) -> None:
    answers: list[bytes] = []

    async def talk(stdin: ByteSendStream, stdout: ByteReceiveStream) -> None:
        for word in (b"one\n", b"two\n", b"three\n"):
            await stdin.send(word)
            answers.append(await heard(stdout, len(word) + 1))

    ended = talked(box, 'while read line; do echo "$line!"; done; echo noted >&2; exit 3', talk)
    assert answers == [b"one!\n", b"two!\n", b"three!\n"]
    assert (ended.exit_code, ended.signal, ended.timed_out) == (3, None, False), "its stdin is closed after the talk"
    assert (ended.stdout, ended.stderr) == (b"", b"noted\n")


def test_a_command_that_ends_first_is_heard_to_the_end(box: ProvableBox) -> None:
    said: list[bytes] = []

    async def talk(stdin: ByteSendStream, stdout: ByteReceiveStream) -> None:
        said.append(await to_the_end(stdout))

    ended = talked(box, "head -c 50000 /dev/zero; kill -SEGV $$", talk)
    assert said == [bytes(50_000)]
    assert (ended.exit_code, ended.signal) == (None, signal.SIGSEGV)


def test_what_a_talk_raises_comes_out_as_it_is_when_everything_is_dead(box: ProvableBox, nap: str) -> None:
    async def talk(stdin: ByteSendStream, stdout: ByteReceiveStream) -> None:
        await heard(stdout, 3)
        raise TalkError("enough")

    with pytest.raises(TalkError, match="enough"):
        talked(box, f"setsid sleep {nap} & echo up; sleep {nap}", talk)
    assert alive(nap) == {}


@pytest.mark.slow  # a grace is used up
@pytest.mark.broad
def test_a_command_that_does_not_end_after_the_talk_is_killed(box: ProvableBox, nap: str) -> None:
    async def talk(stdin: ByteSendStream, stdout: ByteReceiveStream) -> None:
        await heard(stdout, 3)

    ended = talked(box, f"setsid sleep {nap} & echo up; sleep {nap}", talk)
    assert (ended.exit_code, ended.signal, ended.timed_out) == (None, signal.SIGKILL, False)
    assert ended.seconds < 15
    assert alive(nap) == {}


def test_the_time_limit_holds_over_the_talk(box: ProvableBox, nap: str) -> None:
    cancelled: list[bool] = []

    async def talk(stdin: ByteSendStream, stdout: ByteReceiveStream) -> None:
        try:
            await to_the_end(stdout)
        except anyio.get_cancelled_exc_class():
            cancelled.append(True)
            raise

    ended = talked(box, f"setsid sleep {nap} & sleep {nap}", talk, timeout_s=0.3)
    assert (ended.timed_out, ended.exit_code, ended.signal) == (True, None, None)
    assert ended.seconds < 10
    assert cancelled == [True]
    assert alive(nap) == {}


def test_a_cancelled_talk_leaves_nothing(box: ProvableBox, nap: str) -> None:
    async def cancel() -> bool:
        with anyio.CancelScope() as scope:

            async def talk(stdin: ByteSendStream, stdout: ByteReceiveStream) -> None:
                await heard(stdout, 3)
                scope.cancel()
                await anyio.sleep_forever()

            argv = ("/bin/sh", "-c", f"setsid sleep {nap} & echo up; sleep {nap}")
            await box.run(Command(argv, Path("/"), talk=talk))
        return scope.cancelled_caught

    assert anyio.run(cancel)
    assert alive(nap) == {}


def test_a_daemon_that_keeps_the_pipe_does_not_keep_the_talk(box: ProvableBox, nap: str) -> None:
    said: list[bytes] = []

    async def talk(stdin: ByteSendStream, stdout: ByteReceiveStream) -> None:
        said.append(await to_the_end(stdout))

    ended = talked(box, f"setsid sleep {nap} & echo done", talk)
    assert (ended.exit_code, said) == (0, [b"done\n"])
    assert ended.seconds < 10
    assert alive(nap) == {}
