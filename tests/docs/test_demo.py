"""`make demo`: the shop opens, its streams fill, and nothing is left behind."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx

from tests.waiting import until

ROOT = Path(__file__).parents[2]


def test_the_demo_has_traffic_to_look_at_and_ends_with_ctrl_c() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, str(ROOT / "examples" / "shop" / "demo.py"), "--port", str(port), "--seconds", "60"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as demo:
        try:
            published = until(lambda: busy(port), "orders are published and billed", seconds=60)
            until(lambda: everything_moves(port), "changes, webhooks and pushes arrive", seconds=60)
        finally:
            demo.send_signal(signal.SIGINT)
            said = demo.communicate(timeout=120)[0]
    assert published > 10
    assert f"The shop is open: http://localhost:{port}/" in said
    assert "Traceback" not in said, said
    assert demo.returncode == 0


def busy(port: int) -> int:
    """How many orders there are, once billing has received some."""
    try:
        answer: Any = httpx.get(f"http://127.0.0.1:{port}/api/streams/orders/consumers/billing/stats").json()
    except httpx.HTTPError:
        return 0
    stats = answer.get("data", {})
    return int(stats.get("horizon_seq", 0)) if stats.get("horizon_seq", 0) > 10 else 0


def everything_moves(port: int) -> bool:
    """Whether the streams of sources have messages, and the partner has got some."""
    api = f"http://127.0.0.1:{port}/api"
    try:
        last = {each["name"]: each["last_seq"] for each in httpx.get(f"{api}/streams").json()["data"]}
        endpoint: Any = httpx.get(f"{api}/streams/orders/consumers/partner/push").json().get("data") or {}
    except httpx.HTTPError:
        return False
    # Six products were there before.
    return last["catalog"] > 6 and last["refunds"] > 0 and bool(endpoint.get("last_success_at"))
