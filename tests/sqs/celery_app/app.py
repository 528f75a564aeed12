"""A Celery application whose tasks write their number into a file: `celery -A tests.sqs.celery_app.app worker`."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from celery import Celery

SERVER = os.environ["SQS_SERVER"]
app: Any = Celery("shop", broker=f"sqs://key:secret@{urlsplit(SERVER).netloc}")
app.conf.update(
    broker_transport_options={
        "region": "eu-central-1",
        "is_secure": False,
        "visibility_timeout": int(os.environ.get("SQS_VISIBILITY", "30")),
        "wait_time_seconds": 2,
        "polling_interval": 0.1,
    },
    task_default_queue=os.environ["SQS_QUEUE"],
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=10,
    worker_enable_remote_control=False,
    worker_send_task_events=False,
)


@app.task  # type: ignore[untyped-decorator]
def note(number: int) -> None:
    time.sleep(float(os.environ.get("SQS_SECONDS", "0.001")))
    with Path(os.environ["SQS_FILE"]).open("a") as done:
        done.write(f"{number}\n")
