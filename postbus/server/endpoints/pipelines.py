"""Pipelines on Spark, and the archives of streams."""

from __future__ import annotations

from postbus.model.archive import ArchiveInfo
from postbus.model.pipeline import PipelineInfo
from postbus.operations import streams
from postbus.server.endpoint import Call, Endpoints
from postbus.server.responses import Data

endpoints = Endpoints()


@endpoints.add(streams.PIPELINES)
async def list_pipelines(call: Call) -> Data[list[PipelineInfo]]:
    """List pipelines and their progress."""
    return Data([each for each in await call.bus.list_pipelines() if call.token.sees(each.stream)])


@endpoints.add(streams.ARCHIVE)
async def get_archive(call: Call) -> Data[ArchiveInfo | None]:
    """Get the archive of a stream; null if it has none."""
    return Data(await call.bus.archive_info(call.stream))
