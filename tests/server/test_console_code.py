"""What forms of the console show as code does what they say: the SQL and the Python run, and curl is the request."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import nullcontext
from html import unescape
from typing import Any

import psycopg
import pytest

import postbus
from tests.server.conftest import Stream
from tests.server.serving import Api
from tests.server.test_console import OWN, send

SETTINGS = {"name": "made-{s}", "partitions": "3", "retain_up_to": "7d", "max_storage": "1G"}
CONSUMER = {
    "name": "reader",
    "kind": "consumer",
    "to": "time",
    "at": "10m",
    "ack_wait": "45s",
    "backoff": "1s, 10s",
    "filter_key_pattern": "a.>",
    "filter_headers": "kind=x",
}
HOOK = "{s}/consumers/hooks/push"
SCHEDULE = {
    "act": "create",
    "name": "daily",
    "cron": "30 2 * * *",
    "time_zone": "Europe/Berlin",
    "data": '{"it\'s": 1}',
}
# Pages, what is sent there, and how many changes are shown.
FORMS: tuple[tuple[str, dict[str, str], int], ...] = (
    ("new/stream", {"act": "create", **SETTINGS}, 1),
    ("streams/{s}/settings", {"act": "alter", "retain_up_to": "3d"}, 1),
    ("streams/{s}/publish", {"data": '{"a": "it\'s"}', "key": "k", "headers": "note: it's", "priority": "7"}, 1),
    ("streams/{s}/publish", {"data": "1", "delay": "10m", "ttl": "1h"}, 1),
    ("streams/{s}/new-consumer", {"act": "create", **CONSUMER}, 1),
    ("streams/{s}/new-consumer", {"act": "create", "name": "readers", "kind": "group", "to": "latest"}, 1),
    ("streams/{s}/consumers/billing/settings", {"act": "alter", "ack_wait": "1m", "backoff": "exponential"}, 1),
    ("streams/{s}/consumers/billing", {"act": "pause"}, 1),
    ("streams/{s}/consumers/billing", {"act": "resume"}, 1),
    ("streams/{s}/consumers/billing", {"act": "seek", "to": "time", "at": "1h"}, 1),
    ("streams/{s}/consumers/billing", {"act": "seek", "to": "seq", "at": "2"}, 1),
    ("streams/{s}/consumers/billing", {"act": "replay", "since": "1h", "key": "a.>"}, 1),
    ("streams/{s}/consumers/billing", {"as_code": "ack,nack,extend", "ack_id": "{ack_id}"}, 3),
    ("streams/{s}/consumers/billing/dead", {"as_code": "redrive,discard", "seq": "1"}, 2),
    ("streams/{s}/consumers/billing/dead", {"act": "redrive", "which": "matching", "reason": "it's", "rate": "5"}, 1),
    ("streams/{s}/consumers/billing/dead", {"act": "discard", "which": "matching", "reason": "", "key": "a.>"}, 1),
    ("streams/{s}/schedules", SCHEDULE, 1),
    ("streams/{s}/schedules", {"as_code": "pause,resume,run,drop", "name": "beat"}, 4),
    ("streams/{s}/schedules", {"as_code": "cancel", "id": "{scheduled}"}, 1),
    ("streams/" + HOOK, {"act": "pause"}, 1),
    ("streams/" + HOOK, {"act": "resume"}, 1),
    ("streams/" + HOOK, {"act": "test"}, 1),
    ("streams/" + HOOK, {"act": "set", "url": "https://example.com/2", "retry_schedule": "5s, 1m", "timeout": "9s"}, 1),
    ("streams/" + HOOK, {"act": "rotate"}, 1),
    ("streams/" + HOOK, {"act": "drop", "name": "hooks"}, 1),
    ("streams/" + HOOK, {"act": "resend", "since": "1h"}, 1),
    ("sources", {"as_code": "pause,resume", "kind": "webhook", "name": "hook-{s}"}, 2),
    ("sources", {"act": "create-webhook", "name": "new-{s}", "stream": "in-{s}", "kind": "github", "max_rate": "9"}, 1),
    ("tokens", {"act": "create", "name": "billing service", "consume": "yes", "streams": "a*, b", "expires": "90d"}, 1),
    ("tokens", {"as_code": "revoke", "id": "1"}, 1),
    ("streams/{s}/consumers/billing", {"act": "drop", "name": "billing"}, 1),
    ("streams/{s}", {"act": "purge", "name": "{s}"}, 1),
    ("streams/{s}", {"act": "drop", "name": "{s}"}, 1),
)


@pytest.fixture
def filled(orders: Stream, url: str) -> Iterator[dict[str, str]]:
    """A stream with something of everything, and what stands for it in the forms."""
    orders.consumer("hooks")
    with postbus.connect(url, upkeep=False) as bus:
        name, billing = orders.name, bus.consumer(orders.name, "billing")
        bus.publish_many(name, [postbus.Message(key=f"a.{n}", data=n) for n in range(5)])
        billing.terminate(billing.receive(1), reason="it's broken")
        (delivery,) = billing.receive(1)
        bus.schedules.create(name, "beat", every=3600, data=1)
        scheduled = bus.publish(name, data=1, delay=3600)
        bus.consumer(name, "hooks").push.set("https://example.com/hook")
        bus.create_stream(f"in-{name}", dedup_window=7 * 86_400)
        bus.webhook_sources.create(f"hook-{name}", f"in-{name}", kind="none")
        yield {"s": name, "ack_id": delivery.ack_id, "scheduled": str(scheduled)}


def shown(api: Api, path: str, fields: dict[str, str], names: dict[str, str]) -> list[tuple[str, str, str]]:
    """What a form shows: curl, Python and SQL of each change."""
    filled_in = {
        field: re.sub(r"\{(s|ack_id|scheduled)\}", lambda found: names[found[1]], text)
        for field, text in fields.items()
    }
    answer = send(api, path.replace("{s}", names["s"]), **{"as_code": "1", **filled_in})
    assert answer.status_code == 200, unescape(answer.text)
    blocks = [
        unescape(re.sub(r"<[^>]*>", "", each)) for each in re.findall(r"<pre[^>]*>(.*?)</pre>", answer.text, re.S)
    ]
    assert len(blocks) % 3 == 0
    return [(blocks[n], blocks[n + 1], blocks[n + 2]) for n in range(0, len(blocks), 3)]


@pytest.mark.parametrize(
    ("path", "fields", "count"), FORMS, ids=[f"{p} {f.get('act') or f.get('as_code', '')}" for p, f, _ in FORMS]
)
def test_a_form_shows_code_that_runs(
    api: Api,
    filled: dict[str, str],
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    fields: dict[str, str],
    count: int,
) -> None:
    monkeypatch.setenv("POSTBUS_URL", url)
    found = shown(api, path, fields, filled)
    assert len(found) == count
    for curl, python, sql in found:
        command = shlex.split(curl)
        assert command[0] == "curl"
        assert any(each.startswith(f"{api.url}/api/") for each in command)
        with psycopg.connect(url) as connection:
            connection.execute(sql.encode())
            connection.rollback()
        compile(python, "shown", "exec")
    curl, python, _ = found[0]
    scope: dict[str, Any] = {}
    # Nobody sends here, so a test has no result.
    with pytest.raises(postbus.Unavailable) if fields.get("act") == "test" else nullcontext():
        exec(python, scope)
    scope["bus"].close()


def test_curl_is_the_request_that_the_form_makes(api: Api, filled: dict[str, str], url: str) -> None:
    ((curl, _, _),) = shown(api, "streams/{s}/new-consumer", {"act": "create", **CONSUMER}, filled)
    command = shlex.split(curl)
    body = command[command.index("--data-binary") + 1]
    (address,) = [each for each in command if each.startswith("http")]

    answer = api.client.post(address, content=body, headers={"content-type": "application/json"})

    assert answer.status_code == 200, answer.text
    with postbus.connect(url, upkeep=False) as bus:
        info = bus.consumer(filled["s"], "reader").info()
    assert (info.filter_key_pattern, info.filter_headers) == ("a.>", {"kind": "x"})
    assert [each.total_seconds() for each in info.backoff] == [1, 10]


def test_every_form_that_changes_something_has_a_button_for_its_code(api: Api, filled: dict[str, str]) -> None:
    stream = filled["s"]
    for path in (
        "new/stream",
        "tokens",
        "sources",
        *(f"streams/{stream}{rest}" for rest in ("", "/publish", "/settings", "/schedules", "/new-consumer")),
        *(f"streams/{stream}/consumers/billing{rest}" for rest in ("", "/settings", "/dead")),
        f"streams/{stream}/consumers/hooks/push",
    ):
        text = api.get(f"/console/{path}", headers=OWN).text
        forms = re.findall(r'<form(?=[^>]*method="post").*?</form>', text, re.S)
        changing = [each for each in forms if 'name="theme"' not in each]
        assert changing, path
        assert [each for each in changing if 'name="as_code"' not in each] == [], path
