"""What tests of pipelines share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from postbus.pipelines.runtime import spark_session


@pytest.fixture
def shared_spark(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The session of all tests, which commands use instead of starting their own."""

    @contextmanager
    def this_spark(master: str | None, remote: str | None) -> Iterator[Any]:
        yield spark

    monkeypatch.setattr(spark_session, "started", this_spark)
    return spark
