"""`manage.py postbus_worker`: runs tasks until it is stopped."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

import postbus
from postbus.contrib.django.backend import PostbusBackend
from postbus.contrib.django.database import url_of
from postbus.contrib.django.running import TaskRunner
from postbus.contrib.django.tasks_api import task_backends


class Command(BaseCommand):
    """Runs the tasks of a backend."""

    help = "Runs tasks. SIGTERM and Ctrl-C let those that have begun finish."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--backend", default="default", help="The alias in TASKS; default.")
        parser.add_argument(
            "--queue", action="append", help="A queue name; may be repeated. All queues of the backend."
        )
        parser.add_argument(
            "--concurrency", type=int, default=4, help="How many tasks of a queue run at the same time; 4."
        )
        parser.add_argument("--stop-when-empty", action="store_true", help="Stop when no task is left to be run now.")

    def handle(self, *_: Any, **options: Any) -> None:
        backend = task_backends[options["backend"]]
        if not isinstance(backend, PostbusBackend):
            raise CommandError(f'TASKS["{options["backend"]}"] is not a backend of Postbus')
        queues = options["queue"] or sorted(backend.queues)
        if unknown := sorted(set(queues) - set(backend.queues)):
            raise CommandError(
                f"the backend has no queue {', '.join(unknown)}; there are: {', '.join(sorted(backend.queues))}"
            )
        # What Postbus says of a worker belongs on the screen, if the project has not said otherwise.
        logging.getLogger("postbus").setLevel(logging.INFO)
        runner = TaskRunner(backend, f"{socket.gethostname()}-{os.getpid()}")
        try:
            with postbus.connect(url_of(backend.database)) as bus:
                workers = [
                    postbus.Worker(
                        bus.queue(backend.queue_of(name)),
                        runner.handle,
                        concurrency=options["concurrency"],
                        stop_when_empty=options["stop_when_empty"],
                        install_signal_handlers=False,
                    )
                    for name in queues
                ]
                self.stdout.write(f"running tasks of {', '.join(queues)}")
                counts = _run(workers)
        except postbus.NotFound as error:
            raise CommandError(f"{error.message}; run: manage.py migrate") from error
        except postbus.Error as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"ran {counts:,} {'task' if counts == 1 else 'tasks'}")


def _run(workers: list[postbus.Worker]) -> int:
    """Run workers side by side, until they end or a signal stops them; how many tasks were done."""
    done: list[postbus.WorkSummary] = []
    errors: list[BaseException] = []

    def work(worker: postbus.Worker) -> None:
        try:
            done.append(worker.run())
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(each,)) for each in workers]
    with _stopping(workers):
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            for thread in threads:
                thread.join(0.2)
            if errors:
                for worker in workers:
                    worker.stop()
    if errors:
        raise errors[0]
    return sum(each.acked_count for each in done)


@contextmanager
def _stopping(workers: list[postbus.Worker]) -> Iterator[None]:
    """Let SIGTERM and SIGINT stop workers, in the main thread."""
    numbers = (signal.SIGTERM, signal.SIGINT) if threading.current_thread() is threading.main_thread() else ()

    def stop(*_: object) -> None:
        for worker in workers:
            worker.stop()

    former = {each: signal.signal(each, stop) for each in numbers}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
