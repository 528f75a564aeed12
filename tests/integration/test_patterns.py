from __future__ import annotations

from typing import Any

import pytest

from postbus.model.patterns import matches

_KEYS = ["a", "b", "a.b", "a.b.c", "a.*x", "ab", "b.a"]
_PATTERNS = ["a", "*", ">", "a.*", "a.>", "*.b", "*.*", "*.*.>", "a.b.c", "a.*.c", "*.>"]


@pytest.mark.newest_server
def test_python_and_sql_agree_on_patterns(sql: Any) -> None:
    for pattern in _PATTERNS:
        (regex,) = sql.execute("select postbus_data.pattern_regex(%s)", [pattern]).fetchone()
        for key in _KEYS:
            (expected,) = sql.execute("select %s ~ %s", [key, regex]).fetchone()
            assert matches(pattern, key) == expected, (pattern, key)
