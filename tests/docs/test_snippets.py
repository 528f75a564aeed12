"""The snippets of README and how-to pages run, as they are printed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

import postbus

ROOT = Path(__file__).parents[2]


class Base(DeclarativeBase):
    pass


class Invoice(Base):
    __tablename__ = "invoice"
    id: Mapped[int] = mapped_column(primary_key=True)
    amount: Mapped[int]


def snippets(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), re.S)


def test_the_readme_publishes_in_sql(fresh_url: str) -> None:
    publishing, receiving = snippets("README.md", "sql")
    with psycopg.connect(fresh_url, autocommit=True) as connection:
        for statement in publishing.strip().split("\n"):
            cursor = connection.execute(statement.encode())
        (read,) = cursor.fetchall()
        for statement in receiving.strip().split("\n"):
            cursor = connection.execute(statement.encode())
        (received,) = cursor.fetchall()
    assert read[2:4] == received[1:] == ("orders.cus_a.1", '{"quantity": 4}')


def test_the_readme_publishes_in_python(
    fresh_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POSTBUS_URL", fresh_url)
    scope: dict[str, Any] = {}
    for snippet in snippets("README.md", "python"):
        exec(snippet, scope)
    assert len(scope["batch"]) == 1
    scope["bus"].close()

    assert capsys.readouterr().out == "invoices.cus_a.1 {'amount': 120}\n"

    for snippet in snippets("README.md", "python"):
        exec(snippet, scope)  # A second time.
    scope["bus"].close()


def test_the_how_to_reads_by_position(
    fresh_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POSTBUS_URL", fresh_url)
    with postbus.connect(fresh_url) as bus:
        bus.create_stream("orders")
        bus.publish_many("orders", [postbus.Message(key=f"k{n}", data={"n": n}) for n in range(3000)])
    scope: dict[str, Any] = {"index": lambda batch: None}
    for snippet in snippets("docs/how-to/read-by-position.md", "python"):
        exec(snippet, scope)
    scope["bus"].close()
    assert capsys.readouterr().out.splitlines() == ["3000", "0", "3000", "100", "2900"]


def test_the_how_to_publishes_with_psycopg_and_sqlalchemy(fresh_url: str) -> None:
    engine = create_engine(fresh_url.replace("postgresql://", "postgresql+psycopg://"))
    Base.metadata.create_all(engine)
    with postbus.connect(fresh_url) as bus:
        bus.create_stream("orders")
        scope: dict[str, Any] = {
            "url": fresh_url,
            "json": json,
            "Session": Session,
            "engine": engine,
            "Invoice": Invoice,
        }
        psycopg_form, sqlalchemy_form = snippets("docs/how-to/publish-in-your-transaction.md", "python")[:2]
        exec(psycopg_form, scope)
        exec(sqlalchemy_form, scope)
        scope["bus"].close()
        assert [m.data for m in bus.scan("orders")] == [{"invoice": 7}, {"invoice": 8}]
    engine.dispose()


def test_the_how_to_limits_tenants(
    fresh_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POSTBUS_URL", fresh_url)
    with postbus.connect(fresh_url) as bus:
        scope: dict[str, Any] = {"bus": bus}
        setup, why = snippets("docs/how-to/limit-tenants.md", "python")
        exec(setup, scope)
        sender = bus.consumer("mail", "sender")
        assert [each.key for each in sender.receive()] == ["acme.welcome.17"]
        exec(why, scope)
    assert capsys.readouterr().out == "acme 0 1 None None\n"


def test_the_how_to_declares_streams(
    fresh_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POSTBUS_URL", fresh_url)
    (file,) = snippets("docs/how-to/declare-streams.md", "toml")
    (tmp_path / "bus.toml").write_text(file)
    with postbus.connect(fresh_url) as bus:
        assert {each.action for each in bus.apply(tmp_path / "bus.toml")} == {"create"}
    scope: dict[str, Any] = {}
    (snippet,) = snippets("docs/how-to/declare-streams.md", "python")
    exec(snippet, scope)
    scope["bus"].close()
    made, *others = eval(capsys.readouterr().out)
    assert made == ("create", "payments")
    assert others[0] == ("create", "payments/audit")


def test_the_tutorial_in_python_prints_what_it_says(
    fresh_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POSTBUS_URL", fresh_url)
    page = (ROOT / "docs/tutorial/python.md").read_text()
    blocks = re.findall(r"```(python|text)\n(.*?)```", page, re.S)
    assert len(blocks) > 15
    scope: dict[str, Any] = {}
    for (language, block), (following, printed) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        if language == "python":
            exec(block, scope)
            assert capsys.readouterr().out == (printed if following == "text" else ""), block


def test_messages_of_pgmq_are_moved_in_their_order(fresh_url: str) -> None:
    from importlib.resources import files

    (move, outbox) = snippets("docs/how-to/migrate-to-postbus.md", "sql")
    with psycopg.connect(fresh_url, autocommit=True) as connection, postbus.connect(fresh_url) as bus:
        connection.execute(files("pgmq").joinpath("sql/pgmq.sql").read_text().encode())
        connection.execute("select pgmq.create('emails')")
        for number in range(5):
            connection.execute("select pgmq.send('emails', %s)", (json.dumps({"n": number}),))
        emails = bus.create_queue("emails")
        connection.execute(move.encode())
        assert [delivery.data["n"] for delivery in emails.receive(10)] == [0, 1, 2, 3, 4]
        bus.create_stream("orders")
        connection.execute(outbox.splitlines()[1].partition("--")[0].encode())
        assert [message.key for message in bus.scan("orders")] == ["orders.7"]


def test_tasks_of_celery_become_messages(
    fresh_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POSTBUS_URL", fresh_url)
    (snippet,) = snippets("docs/how-to/migrate-to-postbus.md", "python")
    scope: dict[str, Any] = {}
    exec(snippet, scope)
    scope["bus"].close()
    assert capsys.readouterr().out == "welcome 7\n"


def test_postbus_is_uninstalled_by_what_the_how_to_says(fresh_url: str) -> None:
    (snippet,) = snippets("docs/how-to/uninstall.md", "sql")
    generate, drop = snippet.strip().split(" \\gexec\n")
    with psycopg.connect(fresh_url, autocommit=True) as connection:
        connection.execute("select postbus.create_stream('a'), postbus.create_stream('b')")
        connection.execute("select postbus.create_consumer('a', 'c')")
        for (statement,) in connection.execute(generate.encode()).fetchall():
            connection.execute(statement.encode())
        connection.execute(drop.encode())
        left = connection.execute("select count(*) from pg_namespace where nspname like 'postbus%'").fetchone()
    assert left == (0,)
