"""The parts of SQL files that are made from the list of settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from postbus import sql
from tools import settings_sql

ENGINE = Path(sql.__file__).parent


def test_a_stale_region_is_written_anew_and_the_rest_of_the_file_is_left_alone() -> None:
    stale = """create type t as (
    id integer,
    -- <consumer settings: attributes of ack_wait>
    old text
    -- </consumer settings>
);
"""
    assert settings_sql.with_regions(stale) == stale.replace("old text", "ack_wait interval")


@pytest.mark.parametrize(
    ("part", "line"),
    [
        ("parameters", "max_deliver integer default null,"),
        ("checks", "when settings.max_deliver not between 1 and 1000000"),
        ("unsettable", "'max_deliver',"),
        ("help", "max_deliver  How many deliveries before a message becomes a dead letter."),
    ],
)
def test_a_part_repeats_a_setting_as_its_line_in_python_says(part: str, line: str) -> None:
    region = f"-- <consumer settings: {part} of max_deliver>\n-- </consumer settings>\n"

    assert settings_sql.with_regions(region).splitlines()[1] == line


def test_what_is_installed_has_no_marks() -> None:
    marked = [path for path in settings_sql.files(ENGINE) if "-- <" in path.read_text()]

    assert len(marked) >= 10
    assert "-- <consumer settings" not in sql.install_script()
    assert "-- <stream settings" not in sql.install_script()
