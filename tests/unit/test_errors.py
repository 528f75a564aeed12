from __future__ import annotations

import pickle

import pytest

import postbus
from postbus.model.errors import all_errors


@pytest.mark.parametrize("error", all_errors())
def test_every_error_survives_pickling(error: type[postbus.Error]) -> None:
    """Spark and multiprocessing carry errors between processes."""
    copy = pickle.loads(pickle.dumps(error("what", "do this")))
    assert type(copy) is error
    assert (copy.message, copy.hint) == ("what", "do this")


def test_no_two_errors_share_an_sqlstate() -> None:
    codes = [error.sqlstate for error in all_errors()]
    assert len(codes) == len(set(codes))
    assert all(len(code) == 5 and code.startswith("PB") for code in codes)


def test_the_hint_is_a_separate_line() -> None:
    assert (
        str(postbus.NotFound('stream "ordrs" does not exist', "create it"))
        == 'stream "ordrs" does not exist\nhint: create it'
    )
