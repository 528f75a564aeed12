"""Requests reach only the addresses that were checked, whatever names and answers say."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from postbus.http.guard import Guard
from postbus.http.outgoing import Outgoing, OutgoingAnswer, OutgoingFailure
from tests.push.receiver import Receiver, receiving


class Names(AbstractResolver):
    """A name server that gives one answer after another, and the last one from then on."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked += 1
        addresses = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [
            ResolveResult(
                hostname=host, host=address, port=port, family=socket.AF_INET, proto=0, flags=socket.AI_NUMERICHOST
            )
            for address in addresses
        ]

    async def close(self) -> None:
        pass


@pytest.fixture
async def secret() -> AsyncIterator[Receiver]:
    """What nobody outside may reach."""
    async with receiving() as receiver:
        yield receiver


async def trouble(guard: Guard, url: str, names: Names | None = None) -> OutgoingFailure:
    http = Outgoing(guard, resolver=names)
    try:
        with pytest.raises(OutgoingFailure) as failed:
            await http.post(url, {}, b"{}", 3)
    finally:
        await http.close()
    return failed.value


def plain() -> Guard:
    return Guard(allow_http=True)


async def test_a_name_with_a_private_address_is_refused_and_nothing_is_connected(secret: Receiver) -> None:
    url = f"http://evil.example:{secret.port}/"
    for answer in (["127.0.0.1"], ["8.8.8.8", "127.0.0.1"]):
        failure = await trouble(plain(), url, Names(answer))
        assert (failure.trouble, "127.0.0.1" in failure.reason) == ("refused", True)
    assert secret.requests == []


async def test_a_name_that_moves_between_check_and_connection_is_looked_up_once(secret: Receiver) -> None:
    # 127.0.0.2 stands for a public address: allowed, and nobody is there. Then the name moves to what is not allowed.
    names = Names(["127.0.0.2"], ["127.0.0.1"])
    guard = Guard(["127.0.0.2"], allow_http=True)
    http = Outgoing(guard, resolver=names)
    url = f"http://rebinding.example:{secret.port}/"
    # The receiver listens on 127.0.0.1 only: what was checked is connected to, and is not it.
    with pytest.raises(OutgoingFailure) as failed:
        await http._send(http._guarded, url, {}, b"", 3)
    assert (failed.value.trouble, names.asked) == ("unreachable", 1)
    with pytest.raises(OutgoingFailure) as failed:
        await http.post(url, {}, b"", 3)
    assert failed.value.trouble == "refused"
    await http.close()
    assert secret.requests == []


async def test_a_socket_is_refused_even_if_the_check_of_the_name_were_fooled(
    secret: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    from postbus.http import outgoing

    async def unchecked(self: Any, host: str, port: int = 0, family: Any = None) -> Any:
        return await self._resolver.resolve(host, port)

    monkeypatch.setattr(outgoing.CheckingResolver, "resolve", unchecked)
    failure = await trouble(plain(), f"http://evil.example:{secret.port}/", Names(["127.0.0.1"]))
    assert failure.trouble == "refused"
    assert secret.requests == []


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f000001", "localhost", "[::1]", "[::ffff:127.0.0.1]"])
async def test_other_ways_to_write_this_machine_do_not_reach_it(secret: Receiver, host: str) -> None:
    await trouble(plain(), f"http://{host}:{secret.port}/")
    assert secret.requests == []


async def test_redirects_and_proxies_of_the_environment_are_not_followed(
    secret: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{secret.port}")
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{secret.port}")
    async with receiving(lambda _: (302, {"Location": secret.url})) as redirecting:
        http = Outgoing(Guard(["127.0.0.0/8"]))
        answer = await http.post(redirecting.url, {}, b"", 3)
        await http.close()
    assert (answer.status, len(redirecting.requests), secret.requests) == (302, 1, [])


async def test_no_more_of_an_answer_is_read_than_is_of_use() -> None:
    async with receiving(lambda _: (200, {}, b"x" * 10_000_000)) as endless:
        http = Outgoing(Guard(["127.0.0.0/8"]))
        answer = await http.post(endless.url, {}, b"", 5)
        await http.close()
    assert (len(answer.body), len(answer.beginning), answer.is_whole) == (64 * 1024, 1024, False)


async def test_why_there_is_no_answer_is_told_without_the_url() -> None:
    async with receiving(lambda _: None) as silent:
        url = f"{silent.url}?token=secret"
        failure = await trouble(Guard(["127.0.0.0/8"]), url)
        assert failure.trouble == "timeout"
    for each in (failure, await trouble(Guard(["127.0.0.0/8"]), url), await trouble(Guard(), url)):
        assert "secret" not in each.reason
    assert (await trouble(Guard(["127.0.0.0/8"]), url)).trouble == "unreachable"


async def test_a_connection_that_was_closed_while_idle_is_replaced(secret: Receiver) -> None:
    http = Outgoing(Guard(["127.0.0.0/8"]))
    assert (await http.post(secret.url, {}, b"1", 3)).status == 200
    await secret.stop()
    await secret.start()
    assert (await http.post(secret.url, {}, b"2", 3)).status == 200
    await http.close()
    assert [each.body for each in secret.requests] == [b"1", b"2"]


@pytest.mark.parametrize(
    "sent",
    [
        *(b"", b"\x00\xff garbage\r\n\r\n", b"HTTP/1.1 \x00\x00\r\n\r\n", b"HTTP/9.9 200 OK\r\n\r\n"),
        *(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000, b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n"),
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ],
)
async def test_whatever_an_endpoint_says_the_reason_can_be_stored(sent: bytes) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(sent)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as odd:
        http = Outgoing(Guard(["127.0.0.0/8"]))
        url = f"http://127.0.0.1:{odd.sockets[0].getsockname()[1]}/"
        (found,) = await asyncio.gather(http.post(url, {}, b"{}", 2), return_exceptions=True)
        if isinstance(found, OutgoingFailure):
            assert found.trouble in ("broken", "timeout")
            assert found.reason.isprintable()
        else:
            assert isinstance(found, OutgoingAnswer)
            assert not found.is_whole
        await http.close()
