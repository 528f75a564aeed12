"""`postbus pipeline`: Spark jobs that read or write streams. Spark is imported only when one runs."""

from __future__ import annotations

from postbus.cli import output
from postbus.cli.global_options import OUTPUT, TARGET, Commands
from postbus.cli.options import open_bus
from postbus.cli.pipelines import archive as archive
from postbus.cli.pipelines import backfill as backfill
from postbus.cli.pipelines import ingest as ingest
from postbus.cli.pipelines import materialize as materialize
from postbus.cli.pipelines import report as report
from postbus.cli.pipelines import transform as transform
from postbus.cli.pipelines.launch import run_app

app = Commands("Pipelines on Spark: run, list.", shared=(*TARGET, *OUTPUT))
app.add_typer(run_app, name="run")


@app.command("ls")
def ls() -> None:
    """List pipelines: state, rate, lag, last error.

    Example: postbus pipeline ls
    """
    columns = (
        "name",
        "state",
        "message_count",
        "aside_count",
        "late_count",
        "rate",
        "lag_estimate",
        "position_seq",
        "noted_at",
        "last_error",
    )
    with open_bus() as bus:
        found = bus.list_pipelines()
    output.emit(found, columns, empty="no pipelines yet; run one: postbus pipeline run archive orders --to /lake")
