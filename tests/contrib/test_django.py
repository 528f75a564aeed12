"""Django: messages in the transaction of a request, and tasks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import django
import pytest
from django.core import checks
from django.core.management import CommandError, call_command
from django.db import connections, transaction
from django.db.utils import Error as DatabaseError

import postbus
from postbus.testing import TemporaryServer, messages
from tests.waiting import until

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def url(postbus_server: TemporaryServer) -> Iterator[str]:
    """A database in which `manage.py migrate` has run."""
    with postbus_server.database(install=False) as url, pytest.MonkeyPatch.context() as patch:
        patch.setenv("POSTBUS_DJANGO_URL", url)
        patch.setenv("DJANGO_SETTINGS_MODULE", "tests.contrib.django_project.settings")
        django.setup()
        call_command("migrate", verbosity=0)
        yield url
        connections.close_all()


@pytest.fixture
def bus(url: str) -> Iterator[postbus.Bus]:
    from postbus.contrib.django.queues import create_queues

    with postbus.connect(url, upkeep=False) as bus:
        for stream in bus.list_streams():
            bus.drop_stream(stream.name)
        create_queues("default")
        yield bus


@pytest.fixture
def tasks(bus: postbus.Bus) -> Any:
    from tests.contrib.django_project import tasks

    tasks.seen.clear()
    return tasks


@pytest.fixture
def work() -> Callable[[], None]:
    return lambda: call_command("postbus_worker", stop_when_empty=True, concurrency=2, verbosity=0)


def work_until_finished(work: Callable[[], None], result: Any) -> None:
    """Retries wait for a second."""

    def is_finished() -> bool:
        work()
        result.refresh()
        return bool(result.is_finished)

    until(is_finished, "the task is finished")


def test_migrate_installs_postbus_and_creates_the_queues(bus: postbus.Bus) -> None:
    assert {each.name for each in bus.list_streams()} == {"tasks-default", "tasks-slow", "tasks-results"}
    assert bus.queue("tasks-slow").info().max_deliver == 2
    call_command("migrate", verbosity=0)
    assert checks.run_checks() == []


def test_a_message_commits_with_the_transaction_or_not_at_all(bus: postbus.Bus) -> None:
    from postbus.contrib.django import publish

    bus.create_stream("orders", exist_ok=True)
    with transaction.atomic():
        publish("orders", {"n": 1, "at": datetime(2026, 1, 1, tzinfo=UTC)}, key="orders.1", headers={"trace": "t"})
        assert messages(bus, "orders") == []
    with transaction.atomic():
        publish("orders", {"n": 2})
        transaction.set_rollback(True)

    (found,) = messages(bus, "orders")
    assert (found.key, found.headers) == ("orders.1", {"trace": "t"})
    assert found.data == {"n": 1, "at": "2026-01-01T00:00:00+00:00"}
    with pytest.raises(DatabaseError, match='stream "ordrs" does not exist'):
        publish("ordrs", {})
    bus.create_stream("files", data_type="bytes", exist_ok=True)
    publish("files", b"\x00\xff")
    assert [each.data for each in messages(bus, "files")] == [b"\x00\xff"]


def test_tasks_are_run_and_their_results_kept(tasks: Any, work: Callable[[], None]) -> None:
    from django_tasks import TaskResultStatus

    added, greeted, again = tasks.add.enqueue(1, second=2), tasks.greet.enqueue("ada"), tasks.attempt.enqueue()
    assert tasks.add.get_result(added.id).status == TaskResultStatus.READY

    work()
    assert tasks.attempt.get_result(again.id).status == TaskResultStatus.READY
    assert "the first one fails" in tasks.attempt.get_result(again.id).errors[0].traceback
    work_until_finished(work, again)

    added.refresh()
    assert (added.return_value, tasks.seen) == (3, [3])
    assert tasks.greet.get_result(greeted.id).return_value == "hello ada"
    assert tasks.attempt.get_result(again.id).return_value == 2


def test_a_task_that_was_not_committed_is_not_run(tasks: Any, work: Callable[[], None]) -> None:
    from django_tasks.exceptions import TaskResultDoesNotExist

    with transaction.atomic():
        result = tasks.add.enqueue(1, 1)
        transaction.set_rollback(True)
    work()

    assert tasks.seen == []
    with pytest.raises(TaskResultDoesNotExist):
        tasks.add.get_result(result.id)


def test_a_task_that_always_fails_is_a_dead_letter_with_its_reason(
    bus: postbus.Bus, tasks: Any, work: Callable[[], None]
) -> None:
    result = tasks.fail.enqueue()
    work_until_finished(work, result)

    failed = tasks.fail.get_result(result.id)
    assert (failed.status, failed.errors[0].exception_class) == ("FAILED", ValueError)
    (dead,) = bus.queue("tasks-slow").dead_letters()
    assert dead.reason == "ValueError: always"


def test_tasks_wait_for_their_time_and_urgent_ones_go_first(
    bus: postbus.Bus, tasks: Any, work: Callable[[], None]
) -> None:
    tasks.add.using(run_after=datetime.now(UTC) + timedelta(hours=1)).enqueue(9, 9)
    tasks.add.using(priority=-100).enqueue(0, 1)
    tasks.add.enqueue(0, 2)
    tasks.add.using(priority=100).enqueue(0, 3)

    call_command("postbus_worker", stop_when_empty=True, concurrency=1, verbosity=0)

    assert tasks.seen == [3, 2, 1]
    assert len(bus.list_scheduled("tasks-default")) == 1
    bus.cancel("tasks-default", [each.id for each in bus.list_scheduled("tasks-default")])


def test_a_message_that_is_no_task_is_a_dead_letter_and_the_worker_goes_on(
    bus: postbus.Bus, tasks: Any, work: Callable[[], None]
) -> None:
    bus.queue("tasks-default").publish({"task": "os.system", "args": ["false"]})
    tasks.add.enqueue(2, 2)
    work()

    assert tasks.seen == [4]
    (dead,) = bus.queue("tasks-default").dead_letters()
    assert dead.reason == "this is no task that can be run: TypeError: os.system is not a task"


def test_priorities_keep_their_order() -> None:
    from postbus.contrib.django.backend import priority_of

    levels = [4 if level is None else level for level in map(priority_of, range(-100, 101))]
    assert levels == sorted(levels)
    assert (levels[0], levels[99], levels[100], levels[101], levels[-1]) == (0, 3, 4, 5, 9)


def test_wrong_settings_are_found_by_checks_and_a_wrong_queue_by_the_worker(url: str) -> None:
    from postbus.contrib.django.backend import PostbusBackend

    (error,) = PostbusBackend("default", {"OPTIONS": {"retries": 3}}).check()
    assert error.msg == 'TASKS["default"] has unknown options: retries'
    with pytest.raises(CommandError, match="has no queue fast; there are: default, slow"):
        call_command("postbus_worker", queue=["fast"])


def test_sigterm_stops_the_worker_after_what_it_has_begun(url: str, tasks: Any) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "django", "postbus_worker"]
    result = tasks.add.enqueue(4, 4)
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as worker:
        until(lambda: tasks.add.get_result(result.id).is_finished, "the task is run")
        worker.send_signal(signal.SIGTERM)
        said = worker.communicate(timeout=60)[0]

    assert worker.returncode == 0
    assert said.splitlines() == ["running tasks of default, slow", "ran 1 task"]
