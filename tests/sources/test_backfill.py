"""Existing rows are published too, while changes go on: none is missed, and none is older than what was published before."""

from __future__ import annotations

import random
import threading
from typing import Any

import psycopg
import pytest

from postbus.sources import pages
from tests.sources.reading import SourceBed
from tests.waiting import until

pytestmark = pytest.mark.newest_server


def latest(bed: SourceBed) -> dict[str, Any]:
    """The table as the messages leave it, by key."""
    rows: dict[str, Any] = {}
    for message in bed.all_messages():
        data = message.data
        if data["action"] == "truncate":
            rows.clear()
        elif data["action"] == "delete":
            rows.pop(message.key, None)
        else:
            rows[message.key] = data["record"]
    return rows


def wait_for_backfill(bed: SourceBed, state: str = "done") -> None:
    def states() -> set[str]:
        return {table["backfill"] for table in bed.info()["found_tables"]}

    until(lambda: states() == {state}, state, seconds=60)


def test_existing_rows_are_read_and_later_ones_follow(orders: SourceBed) -> None:
    orders.sql.execute("insert into orders select n, 'old' from generate_series(1, 2500) as n")
    orders.create("orders", backfill=True)
    orders.read()
    wait_for_backfill(orders)
    orders.wait_for("streaming")
    orders.sql.execute("insert into orders values (9999, 'new')")
    orders.wait_for_rows(2501)

    found = [message.data for message in orders.all_messages()]
    assert [each["record"]["id"] for each in found] == [*range(1, 2501), 9999]
    assert {each["action"] for each in found[:-1]} == {"read"}
    (table,) = orders.info()["found_tables"]
    assert table["row_count"] == 2500


@pytest.mark.parametrize(
    ("columns", "values"),
    [
        ("a int, b text, primary key (b, a)", "n, (n % 3)::text"),
        ("a uuid primary key", "gen_random_uuid()"),
        ("a text primary key", "'k' || n || chr(200 + n % 50)"),
        ("a mood, b int, primary key (a, b)", "(case n % 2 when 0 then 'sad' else 'happy' end)::mood, n"),
        ("a timestamptz primary key", "now() + n * interval '1 second'"),
        ("a numeric primary key, b text", "n / 3.0, 'x'"),
        ("a bytea primary key", "decode(md5(n::text), 'hex')"),
        ("a date, b inet, c varchar(20), primary key (a, b, c)", "current_date + n % 7, '10.0.0.1'::inet + n, 'c'"),
    ],
    ids=["composite", "uuid", "text", "enum", "time", "numeric", "bytea", "three"],
)
def test_any_primary_key_will_do(bed: SourceBed, columns: str, values: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_FEWEST", 20)
    bed.sql.execute("create type mood as enum ('sad', 'happy')")
    bed.sql.execute(f"create table kinds ({columns})".encode())
    bed.sql.execute(f"insert into kinds select {values} from generate_series(1, 300) as n".encode())
    bed.create("kinds", backfill=True)
    bed.read()
    wait_for_backfill(bed)

    bed.wait_for_rows(300)
    assert len({message.key for message in bed.all_messages()}) == 300


def test_rows_that_change_meanwhile_end_as_they_are(orders: SourceBed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_FEWEST", 50)
    monkeypatch.setattr(pages, "_MOST", 100)
    orders.sql.execute("insert into orders select n, 'old', 0 from generate_series(1, 3000) as n")
    orders.create("orders", backfill=True)
    stop = threading.Event()
    seed = random.randrange(1 << 30)

    def change(number: int) -> None:
        chance = random.Random(seed + number)
        with psycopg.connect(orders.url, autocommit=True) as sql:
            while not stop.is_set():
                row = chance.randrange(3200)
                choice = chance.randrange(10)
                if choice < 5:
                    sql.execute("update orders set total = total + 1 where id = %s", (row,))
                elif choice < 7:
                    sql.execute("delete from orders where id = %s", (row,))
                elif choice < 9:
                    sql.execute("insert into orders values (%s, 'new', 0) on conflict do nothing", (row,))
                else:
                    with sql.transaction():
                        sql.execute("update orders set total = total + 1 where id between %s and %s + 20", (row, row))

    threads = [threading.Thread(target=change, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    orders.read()
    wait_for_backfill(orders)
    stop.set()
    for thread in threads:
        thread.join()
    orders.caught_up()

    rows = orders.sql.execute("select id, item, total from orders order by id").fetchall()
    found = sorted((each["id"], each["item"], each["total"]) for each in latest(orders).values())
    assert found == [(number, item, float(total)) for number, item, total in rows], f"seed {seed}"


def test_a_page_gives_way_to_a_change_that_was_sent_before_others_could_see_it(
    orders: SourceBed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit that waits for a standby is in the log, and so in the stream, but no snapshot sees it yet."""
    orders.sql.execute("insert into orders values (1, 'old'), (2, 'old')")
    orders.create("orders", backfill=False)
    orders.start()
    holds = orders.hold_commits("update orders set item = 'new' where id = 1")
    orders.wait_for_messages(1)

    orders.sql.execute("set synchronous_commit = local")
    orders.sql.execute("select postbus.backfill_source('shop')")
    # The session that waits has not ended for others, so nothing may be read yet.
    orders.stay_at_messages(1)
    holds.release()
    wait_for_backfill(orders)

    assert {row["id"]: row["item"] for row in latest(orders).values()} == {1: "new", 2: "old"}


def test_the_rule_is_needed(orders: SourceBed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a backfill that has begun, only the comparison of transactions with the snapshot keeps an old row back."""
    orders.sql.execute("insert into orders values (1, 'old'), (2, 'old')")
    gate = threading.Event()
    read = pages.PageReader.read

    def wait_and_read(self: Any, progress: Any) -> Any:
        gate.wait(30)
        return read(self, progress)

    monkeypatch.setattr(pages.PageReader, "read", wait_and_read)
    orders.create("orders", backfill=True)
    orders.read()
    orders.wait_for("backfilling")
    holds = orders.hold_commits("update orders set item = 'new' where id = 1")
    orders.wait_for_messages(1)
    gate.set()
    wait_for_backfill(orders)
    holds.release()

    assert {row["id"]: row["item"] for row in latest(orders).values()} == {1: "new", 2: "old"}


def test_a_truncate_after_the_page_was_read_leaves_nothing_of_it(
    orders: SourceBed, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.sql.execute("insert into orders values (1), (2)")
    mark = pages.PageReader.mark

    def truncate_and_mark(self: Any, page: Any) -> None:
        orders.sql.execute("truncate orders")
        orders.sql.execute("insert into orders values (3)")
        mark(self, page)

    monkeypatch.setattr(pages.PageReader, "mark", truncate_and_mark)
    orders.create("orders", backfill=True)
    orders.read()
    until(lambda: len(latest(orders)) == 1, "one row")
    wait_for_backfill(orders)

    assert [row["id"] for row in latest(orders).values()] == [3]


def test_it_pauses_and_goes_on_where_it_was_also_by_another_reader(
    orders: SourceBed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "_FEWEST", 50)
    monkeypatch.setattr(pages, "_MOST", 50)
    orders.sql.execute("insert into orders select n from generate_series(1, 4000) as n")
    orders.create("orders", backfill=True)
    orders.read()
    until(lambda: any(table["row_count"] > 100 for table in orders.info()["found_tables"]), "it has begun")

    orders.sql.execute("select postbus.backfill_source('shop', action => 'pause')")
    wait_for_backfill(orders, "paused")
    orders.wait_for("streaming")
    orders.stop()
    count = orders.info()["found_tables"][0]["row_count"]
    assert count < 4000
    orders.read()
    orders.wait_for("streaming")
    orders.sql.execute("select postbus.backfill_source('shop', action => 'resume')")
    wait_for_backfill(orders)

    orders.wait_for_rows(4000)
    keys = [message.key for message in orders.all_messages()]
    # Also what was under way when it was paused counts.
    assert len(keys) == len(set(keys)) == 4000


def test_a_table_without_a_key_is_refused_and_others_go_on(orders: SourceBed) -> None:
    orders.sql.execute("create table bare (n int); alter table bare replica identity full; insert into bare values (1)")
    orders.sql.execute("insert into orders values (1)")
    orders.create("orders", "bare", backfill=True)
    orders.read()

    until(
        lambda: (
            {table["name"]: table["backfill"] for table in orders.info()["found_tables"]}
            == {"orders": "done", "bare": "refused"}
        ),
        "both",
    )

    assert "primary key" in {table["name"]: table["problem"] for table in orders.info()["found_tables"]}["bare"]
    orders.sql.execute("insert into bare values (2)")
    found = orders.wait_for_messages(2)
    assert found[1]["record"] == {"n": 2}


def test_changes_that_are_too_many_to_remember_begin_the_page_anew(
    orders: SourceBed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postbus.sources.recent.MOST_KEYS", 100)
    monkeypatch.setattr(pages, "_FEWEST", 100)
    monkeypatch.setattr(pages, "_MOST", 100)
    orders.sql.execute("insert into orders select n, 'old' from generate_series(1, 2000) as n")
    orders.create("orders", backfill=True)
    orders.read()
    for _ in range(5):
        orders.sql.execute("update orders set item = 'new' where id % 2 = 0")
    wait_for_backfill(orders)
    orders.caught_up()

    assert {row["id"]: row["item"] for row in latest(orders).values()} == {
        number: "old" if number % 2 else "new" for number in range(1, 2001)
    }


def test_a_change_that_lacks_a_large_value_gets_it_from_the_page(
    bed: SourceBed, monkeypatch: pytest.MonkeyPatch
) -> None:
    bed.sql.execute("create table pages (id int primary key, title text, body text)")
    bed.sql.execute("alter table pages alter column body set storage external")
    bed.sql.execute("insert into pages values (1, 'old', repeat('x', 9000)), (2, 'old', repeat('y', 9000))")
    mark = pages.PageReader.mark

    def change_and_mark(self: Any, page: Any) -> None:
        bed.sql.execute("update pages set title = 'new' where id = 1 and title = 'old'")
        mark(self, page)

    monkeypatch.setattr(pages.PageReader, "mark", change_and_mark)
    bed.create("pages", backfill=True)
    bed.read()
    wait_for_backfill(bed)

    assert {row["id"]: (row["title"], row.get("body")) for row in latest(bed).values()} == {
        1: ("new", "x" * 9000),
        2: ("old", "y" * 9000),
    }
