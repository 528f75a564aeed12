"""An error says what to do about it in the language of whoever is told: Python, SQL, HTTP or the command line."""

from __future__ import annotations

import traceback
from typing import Any

import httpx
import psycopg
import pytest

import postbus
from tests.cli.shell import Shell
from tests.server.serving import Api

pytestmark = pytest.mark.newest_server


async def _hint(call: Any) -> str | None:
    with pytest.raises(postbus.Error) as caught:
        await call
    return caught.value.hint


async def test_python_is_told_in_python(bus: Any, stream: str) -> None:
    assert await _hint(bus.publish("nope", data=1)) == 'create it with: bus.create_stream("nope")'
    assert await _hint(bus.stream_info("nope")) == 'create it with: bus.create_stream("nope")'
    assert await _hint(bus.create_stream(stream)) == "to take it as it is: exist_ok=True"
    ghost = bus.consumer(stream, "ghost")
    expected = f'create it with: bus.create_consumer("{stream}", "ghost")'
    assert await _hint(ghost.stats()) == expected
    assert await _hint(ghost.receive()) == expected
    assert await _hint(bus.group(stream, "ghost").claim()) == f'create it with: bus.create_group("{stream}", "ghost")'
    assert "bus.alter_stream(…, dedup_window=" in str(await _hint(bus.publish(stream, data=1, dedup_id="x")))
    assert f'bus.read("{stream}")' in str(await _hint(bus.state(stream)))


async def test_python_is_told_nothing_of_requests(bus: Any, stream: str) -> None:
    await bus.create_consumer(stream, "c")
    for call in (
        bus.create_stream(stream),
        bus.create_consumer(stream, "c"),
        bus.consumer(stream, "c").receive(0),
        bus.consumer(stream, "c").ack("nonsense"),
        bus.consumer("nope", "c").receive(),
    ):
        assert "/api/" not in str(await _hint(call))


def test_sql_is_told_in_sql(sql: Any, name: str) -> None:
    with pytest.raises(psycopg.Error) as caught:
        sql.execute("select postbus.publish('nope', 'k', '1')")
    assert caught.value.diag.message_hint == "create it with: select postbus.create_stream('nope')"
    sql.execute("select postbus.create_stream(%s)", (name,))
    for call, created in (("receive", "create_consumer"), ("claim", "create_group")):
        with pytest.raises(psycopg.Error) as caught:
            sql.execute(f"select postbus.{call}(%s, 'ghost')", (name,))
        assert caught.value.diag.message_hint == f"create it with: select postbus.{created}('{name}', 'ghost')"


def test_http_is_told_in_requests(api: Api, sql: Any, name: str) -> None:
    def refused(method: str, path: str, **body: Any) -> dict[str, Any]:
        answer: dict[str, Any] = api.request(method, path, **({"json": body} if body else {})).json()
        return answer

    sql.execute("select postbus.create_stream(%s)", (name,))
    unknown = refused("GET", "/api/streams/nope")
    assert unknown["hint"] == 'create it with: POST /api/streams {"name": "nope"}'
    assert unknown["advice"] == {"code": "unknown_stream", "facts": {"stream": "nope"}}
    ghost = refused("GET", f"/api/streams/{name}/consumers/ghost/receive")
    assert ghost["hint"] == 'create it with: POST /api/streams/{stream}/consumers {"name": "ghost"}'
    filtered = refused("POST", f"/api/streams/{name}/consumers", name="c", filter="a.>")
    assert filtered["hint"] == 'did you mean "filter_key_pattern"?'


@pytest.mark.parametrize("over_http", [True, False])
def test_the_command_line_is_told_in_commands(api: Api, url: str, name: str, over_http: bool) -> None:
    shell = Shell(api.url if over_http else url)
    shell("stream", "add", name)

    def told(*arguments: str) -> str:
        with pytest.raises(postbus.Error) as caught:
            shell(*arguments)
        hint = caught.value.hint_for("command line") or ""
        assert "select postbus" not in hint
        assert "/api/" not in hint
        assert "bus." not in hint
        return hint

    assert told("stream", "info", "qqq") == "create it with: postbus stream add qqq"
    assert told("group", "claim", name, "ghost") == f"create it with: postbus group add {name} ghost"
    assert told("message", "send", name, "k", "1", "--dedup-id", "x").startswith("set one: postbus stream edit")
    assert f"postbus stream read {name}" in told("stream", "state", name)
    assert told("stream", "add", name) == "to take it as it is: --exist-ok"
    shell("consumer", "add", name, "c", "--defaults")
    told("consumer", "ack", name, "c", "nonsense")


def test_a_stream_that_was_left_out_is_named_with_the_data_quoted(url: str) -> None:
    with pytest.raises(postbus.InvalidInput) as caught:
        Shell(url)("message", "send", "orders.1", '{ "q": 4 }')
    assert caught.value.hint == """name the stream first: postbus message send STREAM orders.1 '{ "q": 4 }'"""


def test_a_dead_postgres_and_a_dead_server_come_with_a_hint() -> None:
    for url, command in (("postgresql://127.0.0.1:1/none", "context info"), ("http://127.0.0.1:1", "postbus up")):
        with pytest.raises(postbus.Unavailable) as caught:
            postbus.connect(url, connect_timeout=1)
        assert "POSTBUS_URL" in str(caught.value.hint)
        assert command in str(caught.value.hint_for("command line"))


def test_a_missing_token_is_asked_for_in_each_language(fresh_url: str) -> None:
    from tests.server.serving import serving

    with serving(fresh_url, require_tokens=True) as closed:
        assert "Authorization: Bearer" in httpx.get(f"{closed.url}/api/streams").json()["hint"]
        with postbus.connect(closed.url, token="wrong") as bus, pytest.raises(postbus.NotAllowed) as caught:
            bus.list_streams()
        assert "connect(…, token=…)" in str(caught.value.hint)
        assert "POSTBUS_TOKEN" in str(caught.value.hint_for("command line"))


async def test_a_traceback_ends_where_postbus_said_no(bus: Any) -> None:
    with pytest.raises(postbus.NotFound) as caught:
        await bus.publish("nope", data=1)
    shown = "".join(traceback.format_exception(caught.value))
    assert "direct cause" not in shown
    assert "another exception" not in shown


def test_a_closed_bus_says_so(url: str, api: Api) -> None:
    for target in (url, api.url):
        bus = postbus.connect(target)
        bus.close()
        with pytest.raises(postbus.Unavailable, match="this bus was closed"):
            bus.publish("nope", data=1)


def test_what_does_not_exist_is_not_answered_with_what_a_request_takes(api: Api, sql: Any, name: str) -> None:
    sql.execute("select postbus.create_stream(%s)", (name,))
    with pytest.raises(postbus.NotFound) as caught:
        Shell(api.url)("schedule", "info", name, "nope")
    assert caught.value.hint_for("command line") is None
