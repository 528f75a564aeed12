"""The codes by which SQL raises errors, and the classes that stand for them."""

from __future__ import annotations

import re

from postbus import sql
from postbus.model import errors
from postbus.model.advice import TEXTS

# Raised and caught by SQL; nobody else sees them.
INTERNAL = {"PB001", "PB002"}
# Raised by the library, never by SQL.
OF_THE_LIBRARY = {"PB504", "PB506"}


def test_every_code_that_sql_raises_has_its_class_and_every_class_is_raised() -> None:
    text = sql.functions() + sql.tables() + "".join(m.statements for m in sql.migrations())

    raised = set(re.findall(r"errcode = '(\w+)'", text))

    assert raised - INTERNAL == {error.sqlstate for error in errors.all_errors()} - OF_THE_LIBRARY


def test_a_code_that_sql_keeps_to_itself_is_caught_in_sql() -> None:
    for code in INTERNAL:
        assert f"when sqlstate '{code}' then" in sql.functions()


def test_every_advice_that_sql_names_is_said_on_every_surface() -> None:
    # The last two are put together: 'unknown_' || kind.
    named = set(re.findall(r"constraint = '(\w+)'", sql.functions())) - {"unknown_"} | {
        "unknown_consumer",
        "unknown_group",
    }

    assert "unknown_stream" in named
    for code in named:
        assert all(TEXTS[code][surface] for surface in ("python", "command line", "http")), code
