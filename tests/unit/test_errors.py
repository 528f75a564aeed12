from __future__ import annotations

import pickle
from typing import Any

import pytest

import postbus
from postbus.http.errors import of_answer
from postbus.model.advice import Advice
from postbus.model.errors import all_errors


@pytest.mark.parametrize("error", all_errors())
def test_every_error_survives_pickling(error: type[postbus.Error]) -> None:
    """Spark and multiprocessing carry errors between processes."""
    copy = pickle.loads(pickle.dumps(error("what", "do this")))
    assert type(copy) is error
    assert (copy.message, copy.hint) == ("what", "do this")


def test_an_error_keeps_its_advice_when_it_is_pickled() -> None:
    error = postbus.NotFound.advised("what", Advice("unknown_stream", {"stream": "it's"}))
    copy = pickle.loads(pickle.dumps(error))

    assert copy.hint == error.hint == 'create it with: bus.create_stream("it\'s")'
    assert copy.hint_for("command line") == """create it with: postbus stream add 'it'"'"'s'"""
    assert copy.hint_for("http") == 'create it with: POST /api/streams {"name": "it\'s"}'


@pytest.mark.parametrize(
    "advice", [{"code": "of a newer server"}, {"code": "unknown_stream", "facts": 1}, "text", None]
)
def test_advice_that_is_not_understood_leaves_the_hint(advice: Any) -> None:
    error = of_answer(404, {"summary": "what", "code": "not_found", "hint": "do this", "advice": advice})
    assert (type(error), error.message, error.hint) == (postbus.NotFound, "what", "do this")


def test_no_two_errors_share_an_sqlstate() -> None:
    codes = [error.sqlstate for error in all_errors()]
    assert len(codes) == len(set(codes))
    assert all(len(code) == 5 and code.startswith("PB") for code in codes)


def test_the_hint_is_a_separate_line() -> None:
    assert (
        str(postbus.NotFound('stream "ordrs" does not exist', "create it"))
        == 'stream "ordrs" does not exist\nhint: create it'
    )
