"""Contexts: where they are kept, and which bus a command works on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import postbus
from postbus.cli.global_options import GlobalOptions
from postbus.cli.target import find_target, target_to_serve
from tests.cli.shell import Shell

pytestmark = pytest.mark.newest_server

HERE = Shell(None)


def stored() -> Path:
    return Path(os.environ["POSTBUS_CONTEXTS"])


def test_contexts_are_created_listed_used_and_removed_in_a_file_for_the_owner_only() -> None:
    assert HERE("context", "ls") == ""
    HERE("context", "create", "dev", "--url", "postgresql://me@localhost/dev", "--use")
    HERE("context", "add", "prod", "--url", "https://bus.example.com", "--token", "env:PROD_TOKEN")
    assert stored().stat().st_mode & 0o777 == 0o600
    assert [(c["name"], c["in_use"]) for c in HERE.objects("context", "ls")] == [("dev", True), ("prod", False)]
    HERE("context", "use", "prod")
    assert HERE.objects("context", "info", "prod") == [
        {"name": "prod", "url": "https://bus.example.com", "token": "env:PROD_TOKEN", "password": None}
    ]
    HERE("context", "rm", "prod", "--yes")
    assert [(c["name"], c["in_use"]) for c in HERE.objects("context", "ls")] == [("dev", False)]


def test_a_file_that_others_can_read_is_closed_to_them() -> None:
    HERE("context", "create", "dev", "--url", "postgresql://me@localhost/dev")
    stored().chmod(0o644)
    HERE("context", "ls")
    assert stored().stat().st_mode & 0o777 == 0o600


def test_a_secret_is_never_printed() -> None:
    HERE("context", "create", "a", "--url", "postgresql://me:hidden1@localhost/dev")
    HERE("context", "create", "b", "--url", "http://localhost:7376", "--token", "-", input="hidden2\n")
    assert "hidden2" in stored().read_text()
    for arguments in (["ls"], ["ls", "--json"], ["info", "a"], ["info", "b"]):
        assert "hidden" not in HERE("context", *arguments)


def test_a_context_leads_to_its_bus_with_secrets_from_the_environment_and_from_files(
    fresh_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BUS_URL", fresh_url)
    HERE("context", "create", "by-variable", "--url", "env:BUS_URL")
    (tmp_path / "url").write_text(fresh_url + "\n")
    HERE("context", "create", "by-file", "--url", f"file:{tmp_path / 'url'}")

    HERE("stream", "add", "orders", "--context", "by-variable")
    assert "orders" in HERE("stream", "ls", "--context", "by-file")
    monkeypatch.setenv("POSTBUS_CONTEXT", "by-file")
    assert "orders" in HERE("stream", "ls")


def test_options_come_before_the_environment_and_that_before_the_context_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("one", "two", "three"):
        HERE("context", "create", name, "--url", f"postgresql://{name}@localhost/x")

    def chosen(**options: str) -> str:
        found = find_target(GlobalOptions(**options))  # type: ignore[arg-type]
        return found.url.split("/")[2].split("@")[0] if found.url else f"embedded {found.data_dir}"

    assert chosen() == "embedded None"
    HERE("context", "use", "one")
    assert chosen() == "one"
    monkeypatch.setenv("POSTBUS_DATA_DIR", "/data")
    assert chosen() == "embedded /data"
    monkeypatch.setenv("POSTBUS_CONTEXT", "two")
    assert chosen() == "two"
    monkeypatch.setenv("POSTBUS_URL", "postgresql://url@localhost/x")
    assert chosen() == "url"
    assert chosen(context="three") == "three"
    assert chosen(url="postgresql://given@localhost/x") == "given"
    assert chosen(data_dir="/other") == "embedded /other"
    assert "POSTBUS_URL" in HERE("context", "info")
    with pytest.raises(postbus.InvalidInput, match="exclude each other"):
        chosen(context="one", url="postgresql://x@localhost/x")


def test_a_password_is_put_into_the_url_with_its_odd_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_PASSWORD", "p@ss/word")
    HERE("context", "create", "db", "--url", "postgresql://me@localhost/x", "--password", "env:DB_PASSWORD")
    assert find_target(GlobalOptions(context="db")).url == "postgresql://me:p%40ss%2Fword@localhost/x"


@pytest.mark.parametrize(
    ("arguments", "what", "hint"),
    [
        (["use", "prd"], '"prd" does not exist', 'did you mean "prod"?'),
        (["create", "prod", "--url", "http://localhost"], "exists", "--force"),
        (["create", "other", "--url", "localhost:7376"], "is not a URL", "http://host:7376"),
        (["create", "a b", "--url", "http://localhost"], "is not a name", None),
        (["use"], "no context was named", "--none"),
    ],
)
def test_a_mistake_is_answered_with_what_to_do(arguments: list[str], what: str, hint: str | None) -> None:
    HERE("context", "create", "prod", "--url", "http://localhost:7376")
    with pytest.raises(postbus.Error) as caught:
        HERE("context", *arguments)
    assert what in caught.value.message
    assert hint is None or hint in (caught.value.hint or "")


def test_a_missing_secret_is_named() -> None:
    HERE("context", "create", "prod", "--url", "http://localhost:7376", "--token", "env:NOT_SET", "--use")
    with pytest.raises(postbus.InvalidInput, match="NOT_SET"):
        HERE("stream", "ls")


def test_an_invalid_json_file_is_named() -> None:
    stored().parent.mkdir()
    stored().write_text("{")
    with pytest.raises(postbus.InvalidInput, match=r"contexts\.json is not JSON"):
        HERE("context", "ls")


def test_as_curl_is_refused_where_no_request_is_sent() -> None:
    with pytest.raises(postbus.InvalidInput, match="not a server"):
        HERE("stream", "rm", "orders", "--as-curl", "--url", "postgresql://me@localhost/x")


def test_the_environment_overrides_the_context_and_choosing_one_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "note" not in HERE.run("context", "create", "dev", "--url", "postgresql://me@localhost/dev", "--use").err
    monkeypatch.setenv("POSTBUS_DATA_DIR", "/somewhere")
    assert "note: POSTBUS_DATA_DIR is set and takes precedence" in HERE.run("context", "use", "dev").err


def test_a_server_starts_again_though_its_context_is_in_use(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    HERE("context", "create", "here", "--url", "http://127.0.0.1:7376", "--use")

    assert target_to_serve().url is None
    assert "the context in use (here) is a server; this one uses the embedded Postgres" in capsys.readouterr().err
    HERE("context", "create", "prod", "--url", "postgresql://me@localhost/prod", "--use")
    assert target_to_serve().url == "postgresql://me@localhost/prod"
    monkeypatch.setenv("POSTBUS_URL", "http://127.0.0.1:7376")
    assert target_to_serve().is_http
