"""The archive of a stream: what of it lies in files of a lake, and how to read it there."""

from __future__ import annotations

from postbus.html.markup import Html, join, tag
from postbus.model.archive import ArchiveInfo
from postbus.model.stream import StreamInfo
from postbus.model.wording import count, size
from postbus.server.console.pages import overview, pipelines
from postbus.server.console.parts import card, code, facts, heading, tiles
from postbus.server.console.stream_tabs import tabs
from postbus.server.console.visit import Page, Visit


async def show(visit: Visit) -> Page:
    """How far a stream is archived, and the pipelines that read or write it."""
    stream = visit.stream
    visit.demand_sight(stream)
    info = await visit.bus.stream_info(stream)
    archive = await visit.bus.archive_info(stream)
    found = [each for each in (await overview.visible(visit)).pipelines if each.stream == stream]
    body = join(
        tabs(visit, stream, "archive"),
        _missing(stream) if archive is None else _standing(info, archive),
        card(heading("Pipelines of this stream"), pipelines.listed(visit, found, stream), id="pipelines", live=True),
        None if archive is None else _reading(stream),
    )
    crumbs = (("Streams", visit.to("streams")), (stream, visit.to("streams", stream)))
    return Page("Archive", body, crumbs=crumbs, tab="streams")


def _missing(stream: str) -> Html:
    return card(
        heading("There is no archive"),
        tag(
            "p",
            "An archive keeps messages in files of a lake, beyond what retention leaves in the stream. This begins one:",
        ),
        tag("pre", code(f"postbus pipeline run archive {stream} --to /lake"), data_copy=""),
    )


def _standing(info: StreamInfo, archive: ArchiveInfo) -> Html:
    behind = max(0, info.last_seq - archive.position_seq)
    whole = max(1, info.last_seq - archive.start_after)
    done = min(whole, max(0, archive.position_seq - archive.start_after))
    return card(
        tiles(
            ("archived up to seq", f"{archive.position_seq:,}"),
            ("behind, in seqs", f"{behind:,}"),
            ("messages", count(archive.message_count)),
            ("files", count(archive.file_count)),
            ("size", size(archive.bytes)),
            id="facts",
        ),
        card(
            tag("progress", max=whole, value=done, aria_label="archived"),
            facts((("folder", code(archive.root)), ("from seq", f"{archive.start_after + 1:,}"))),
        ),
        id="archive",
        live=True,
        class_="bare",
    )


def _reading(stream: str) -> Html:
    spark = f'spark.read.format("postbus").option("stream", "{stream}").option("includeArchive", "true").load()'
    replay = f"postbus pipeline run replay {stream} --into {stream}-again --from 365d"
    return card(
        heading("Read it"),
        tag("p", "In Spark, archive and stream as one; or publish archived messages again:"),
        tag("pre", code(spark), data_copy=""),
        tag("pre", code(replay), data_copy=""),
    )
