"""What changes of tables become, from the first to the last of a transaction."""

from __future__ import annotations

import json

import pytest

from tests.sources.reading import SourceBed


def test_rows_that_are_inserted_updated_and_deleted_become_messages(orders: SourceBed) -> None:
    orders.create("orders")
    orders.start()

    orders.sql.execute("insert into orders values (1, 'tea', 3.50)")
    orders.sql.execute("update orders set item = 'coffee' where id = 1")
    orders.sql.execute("delete from orders where id = 1")

    inserted, updated, deleted = orders.wait_for_messages(3)
    assert inserted["record"] == {"id": 1, "item": "tea", "total": 3.5}
    assert inserted["action"] == "insert"
    assert inserted["metadata"]["table_name"] == "orders"
    assert inserted["metadata"]["source"] == "shop"
    assert updated["record"]["item"] == "coffee"
    assert updated["action"] == "update"
    assert deleted["record"] == {"id": 1}
    assert deleted["action"] == "delete"
    assert {message.key for message in orders.messages()} == {f"{orders.prefix}.orders.1"}


@pytest.mark.newest_server
def test_changes_of_before_the_source_are_not_published(orders: SourceBed) -> None:
    orders.sql.execute("insert into orders values (1)")
    orders.create("orders")
    orders.start()

    orders.sql.execute("insert into orders values (2)")

    assert [each["record"]["id"] for each in orders.wait_for_messages(1)] == [2]


@pytest.mark.newest_server
def test_messages_of_a_transaction_are_in_its_order_and_appear_together(orders: SourceBed) -> None:
    orders.create("orders")
    orders.start()

    with orders.sql.transaction():
        for number in range(50):
            orders.sql.execute("insert into orders values (%s)", (number,))

    found = orders.wait_for_messages(50)
    assert [each["record"]["id"] for each in found] == list(range(50))
    assert [each["metadata"]["commit_idx"] for each in found] == list(range(1, 51))
    assert len({each["metadata"]["commit_lsn"] for each in found}) == 1
    assert len({each["metadata"]["idempotency_key"] for each in found}) == 50


@pytest.mark.newest_server
def test_what_is_rolled_back_is_not_published(orders: SourceBed) -> None:
    orders.create("orders")
    orders.start()

    with orders.sql.transaction():
        orders.sql.execute("insert into orders select n from generate_series(1, 5) as n")
        with orders.sql.transaction(force_rollback=True):
            orders.sql.execute("insert into orders select n from generate_series(6, 505) as n")
        orders.sql.execute("insert into orders values (1000)")
    with orders.sql.transaction(force_rollback=True):
        orders.sql.execute("insert into orders values (2000)")

    assert [each["record"]["id"] for each in orders.wait_for_messages(6)] == [1, 2, 3, 4, 5, 1000]


@pytest.mark.newest_server
def test_a_key_that_changes_is_a_delete_of_the_old_and_an_insert_of_the_new(orders: SourceBed) -> None:
    orders.create("orders")
    orders.start()
    orders.sql.execute("insert into orders values (1, 'tea')")

    orders.sql.execute("update orders set id = 2")

    _, deleted, inserted = orders.wait_for_messages(3)
    assert (deleted["action"], deleted["record"]) == ("delete", {"id": 1})
    assert (inserted["action"], inserted["record"]["id"]) == ("insert", 2)
    assert [message.key for message in orders.messages()][1:] == [
        f"{orders.prefix}.orders.1",
        f"{orders.prefix}.orders.2",
    ]


@pytest.mark.newest_server
def test_with_the_full_identity_updates_say_what_was_before_and_deletes_the_whole_row(orders: SourceBed) -> None:
    orders.sql.execute("alter table orders replica identity full")
    orders.create("orders")
    orders.start()

    orders.sql.execute("insert into orders values (1, 'tea', 3)")
    orders.sql.execute("update orders set item = 'coffee'")
    orders.sql.execute("update orders set id = 7")
    orders.sql.execute("delete from orders")

    _, updated, key_deleted, _, deleted = orders.wait_for_messages(5)
    assert updated["changes"] == {"item": "tea"}
    assert key_deleted["record"] == {"id": 1, "item": "coffee", "total": 3}
    assert deleted["record"] == {"id": 7, "item": "coffee", "total": 3}


@pytest.mark.newest_server
def test_a_large_value_that_did_not_change_is_left_out_and_named(bed: SourceBed) -> None:
    bed.sql.execute("create table pages (id int primary key, title text, body text)")
    bed.sql.execute("alter table pages alter column body set storage external")
    bed.create("pages")
    bed.start()

    bed.sql.execute("insert into pages values (1, 'a', repeat('x', 100000))")
    bed.sql.execute("update pages set title = 'b'")
    bed.sql.execute("alter table pages replica identity full")
    bed.sql.execute("update pages set title = 'c'")

    inserted, marked, whole = bed.wait_for_messages(3)
    assert len(inserted["record"]["body"]) == 100_000
    assert marked["record"] == {"id": 1, "title": "b"}
    assert marked["metadata"]["unchanged_toast"] == ["body"]
    assert whole["record"] == {"id": 1, "title": "c", "body": "x" * 100_000}
    assert whole["changes"] == {"title": "b"}


@pytest.mark.newest_server
def test_a_truncate_is_one_message_for_each_table(bed: SourceBed) -> None:
    bed.sql.execute("create table a (id int primary key); create table b (id int primary key)")
    bed.create("a", "b")
    bed.start()

    bed.sql.execute("truncate a, b")

    found = bed.wait_for_messages(2)
    assert [(each["action"], each["record"]) for each in found] == [("truncate", None)] * 2
    assert sorted(each["metadata"]["table_name"] for each in found) == ["a", "b"]


@pytest.mark.newest_server
def test_columns_may_come_go_and_be_renamed_while_it_reads(orders: SourceBed) -> None:
    orders.create("orders")
    orders.start()

    orders.sql.execute("insert into orders values (1, 'tea', 1)")
    orders.sql.execute("alter table orders add column note text")
    orders.sql.execute("insert into orders values (2, 'tea', 1, 'x')")
    orders.sql.execute("alter table orders rename column item to thing")
    orders.sql.execute("alter table orders drop column total")
    orders.sql.execute("insert into orders values (3, 'tea', 'y')")
    orders.sql.execute("alter table orders alter column note type int using 1")
    orders.sql.execute("update orders set note = 2 where id = 3")

    records = [each["record"] for each in orders.wait_for_messages(4)]
    assert records == [
        {"id": 1, "item": "tea", "total": 1},
        {"id": 2, "item": "tea", "total": 1, "note": "x"},
        {"id": 3, "thing": "tea", "note": "y"},
        {"id": 3, "thing": "tea", "note": 2},
    ]


@pytest.mark.newest_server
def test_operations_columns_and_conditions_choose_what_is_published(orders: SourceBed) -> None:
    orders.create(
        "orders",
        operations=["insert"],
        columns=json.dumps({"orders": ["id", "total"]}),
        filters=json.dumps({"orders": "total > 10"}),
    )
    orders.start()

    orders.sql.execute("insert into orders values (1, 'a', 5), (2, 'b', 15)")
    orders.sql.execute("update orders set total = 20")
    orders.sql.execute("insert into orders values (3, 'c', 30)")

    found = orders.wait_for_messages(2)
    assert [each["record"] for each in found] == [{"id": 2, "total": 15}, {"id": 3, "total": 30}]


@pytest.mark.newest_server
def test_a_partitioned_table_has_its_own_name(bed: SourceBed) -> None:
    bed.sql.execute("create table events (id int, day date, primary key (id, day)) partition by range (day)")
    bed.sql.execute("create table events_1 partition of events for values from ('2026-01-01') to ('2026-02-01')")
    bed.create("events*")
    bed.start()
    bed.sql.execute("create table events_2 partition of events for values from ('2026-02-01') to ('2026-03-01')")

    bed.sql.execute("insert into events values (1, '2026-01-05'), (2, '2026-02-05')")
    bed.sql.execute("update events set day = '2026-02-06' where id = 1")

    found = bed.wait_for_messages(4)
    assert {each["metadata"]["table_name"] for each in found} == {"events"}
    assert bed.messages()[0].key == f"{bed.prefix}.events.1.2026-01-05"
    assert [table["name"] for table in bed.info()["found_tables"]] == ["events"]


@pytest.mark.newest_server
def test_annotations_of_a_transaction_are_in_its_messages(orders: SourceBed) -> None:
    orders.create("orders")
    orders.start()

    with orders.sql.transaction():
        orders.sql.execute("""select pg_logical_emit_message(true, 'postbus:annotations', '{"user": "ada"}')""")
        orders.sql.execute("insert into orders values (1)")
    with orders.sql.transaction():
        orders.sql.execute("select pg_logical_emit_message(true, 'postbus:annotations', 'no json')")
        orders.sql.execute("insert into orders values (2)")

    first, second = orders.wait_for_messages(2)
    assert first["metadata"]["transaction_annotations"] == {"user": "ada"}
    assert second["metadata"]["transaction_annotations"] is None


@pytest.mark.newest_server
def test_values_lose_nothing(bed: SourceBed) -> None:
    bed.sql.execute(
        """
        create type mood as enum ('sad', 'happy');
        create domain cents as int;
        create table kinds (
            id uuid primary key, small int2, big int8, price numeric, exact numeric, nan float8, tiny float4, yes bool, raw bytea,
            doc jsonb, text_doc json, at timestamptz, local timestamp, day date, span interval, feel mood, tags text[],
            grid int[], words text, ranged int4range, pay cents, forever timestamptz, ip inet, fixed char(5), odd int[]
        )
        """
    )
    bed.create("kinds")
    bed.start()

    bed.sql.execute(
        r"""
        insert into kinds values (
            '00000000-0000-0000-0000-000000000001', -7, 9223372036854775807, 12.50,
            123456789012345678901234567890.123456789, 'NaN', 0.1, true, '\x00ff', '{"b": [1, 2.50]}', '{"a":  1}',
            '2026-05-01 12:00:00.5+02',
            '2026-05-01 12:00:00', '2026-05-01',
            '1 day 02:03:04', 'happy', array['a"b', 'c,d', null, 'NULL', ''], '{{1,2},{3,4}}',
            E'\u00e9 "\\ \n', '[1,5)', 99, 'infinity',
            '10.0.0.1', 'ab', '[0:1]={7,8}'
        )
        """
    )

    (found,) = bed.wait_for_messages(1)
    (text,) = bed.sql.execute("select data::text from postbus_data.log_1_1").fetchone() or ("",)
    assert '"price":12.50' in text
    assert '"doc":{"b": [1, 2.50]}' in text
    assert found["record"] == {
        "id": "00000000-0000-0000-0000-000000000001",
        "small": -7,
        "big": 9223372036854775807,
        "price": 12.5,
        "exact": "123456789012345678901234567890.123456789",
        "nan": "NaN",
        "tiny": 0.1,
        "yes": True,
        "raw": "AP8=",
        "doc": {"b": [1, 2.5]},
        "text_doc": {"a": 1},
        "at": "2026-05-01T10:00:00.5Z",
        "local": "2026-05-01T12:00:00",
        "day": "2026-05-01",
        "span": "1 day 02:03:04",
        "feel": "happy",
        "tags": ['a"b', "c,d", None, "NULL", ""],
        "grid": [[1, 2], [3, 4]],
        "words": 'é "\\ \n',
        "ranged": "[1,5)",
        "pay": "99",
        "forever": "infinity",
        "ip": "10.0.0.1",
        "fixed": "ab   ",
        "odd": "[0:1]={7,8}",
    }


@pytest.mark.newest_server
def test_any_key_makes_one_that_a_message_can_have(bed: SourceBed) -> None:
    bed.sql.execute("create table odd (a text, b text, primary key (a, b))")
    bed.create("odd")
    bed.start()

    bed.sql.execute("insert into odd values ('x.y', 'a b*>'), ('x', 'y'), ('', repeat('é', 300)), ('%', E'\\t')")

    bed.wait_for_messages(4)
    keys = [message.key.removeprefix(f"{bed.prefix}.odd.") for message in bed.messages()]
    assert keys[0] == "x%2Ey.a%20b%2A%3E"
    assert keys[1] == "x.y"
    assert keys[2].startswith("%.é")
    assert keys[3] == "%25.%09"


@pytest.mark.newest_server
def test_the_bus_never_publishes_its_own_tables(orders: SourceBed) -> None:
    orders.sql.execute("create publication everything for all tables")
    orders.create("*", "*.*", publication="everything")
    orders.start()

    orders.sql.execute("insert into orders values (1)")
    orders.wait_for_messages(1)
    orders.caught_up()

    assert len(orders.messages()) == 1


@pytest.mark.newest_server
def test_a_key_that_changes_takes_large_values_along(bed: SourceBed) -> None:
    bed.sql.execute("create table pages (id int primary key, body text, note text)")
    bed.sql.execute("alter table pages alter column body set storage external")
    bed.create("pages")
    bed.start()
    bed.sql.execute("insert into pages values (1, repeat('x', 100000))")

    bed.sql.execute("update pages set id = 2")

    _, _, inserted = bed.wait_for_messages(3)
    assert inserted["record"] == {"id": 2, "body": "x" * 100_000, "note": None}


@pytest.mark.newest_server
def test_debezium_s_format_has_its_fields(bed: SourceBed) -> None:
    bed.sql.execute("create table pages (id int primary key, title text, body text)")
    bed.sql.execute("alter table pages alter column body set storage external")
    bed.create("pages", format="debezium", key_template="source.table.pk.action")
    bed.start()

    bed.sql.execute("insert into pages values (1, 'a', repeat('x', 9000))")
    bed.sql.execute("update pages set title = 'b'")
    bed.sql.execute("delete from pages")
    bed.sql.execute("truncate pages")

    inserted, updated, deleted, truncated = bed.wait_for_messages(4)
    assert (inserted["op"], inserted["before"], inserted["after"]["title"]) == ("c", None, "a")
    assert (updated["op"], updated["after"]["body"]) == ("u", "__debezium_unavailable_value")
    assert (deleted["op"], deleted["before"], deleted["after"]) == ("d", {"id": 1}, None)
    assert (truncated["op"], truncated["after"]) == ("t", None)
    assert inserted["source"]["connector"] == "postgresql"
    assert (inserted["source"]["table"], inserted["source"]["snapshot"]) == ("pages", "false")
    keys = [message.key for message in bed.messages()]
    assert keys == ["shop.pages.1.insert", "shop.pages.1.update", "shop.pages.1.delete", "shop.pages.truncate"]
