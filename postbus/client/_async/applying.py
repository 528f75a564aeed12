"""The part of a bus that makes it what a file says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from postbus.client._async.base import AsyncClient
from postbus.model import declaration
from postbus.model.change import Change, Found, difference, exported
from postbus.model.consumer import Filter
from postbus.model.declaration import Declared, comparable
from postbus.model.errors import Conflict, NotFound
from postbus.model.settings import ConsumerSettings, StreamSettings, settings_of
from postbus.operations import consumers, groups, streams

_OF_STREAMS: Final = settings_of(StreamSettings)
_OF_CONSUMERS: Final = settings_of(ConsumerSettings)
_FILTER_PARTS: Final = {
    "key": "filter_key_pattern",
    "headers": "filter_headers",
    "headers_not": "filter_headers_not",
    "data": "filter_data",
}


class AsyncApplying(AsyncClient):
    """The part of a bus that makes it what a file says."""

    async def apply(
        self, source: Mapping[str, Any] | Path | str, *, dry_run: bool = False, prune: bool = False
    ) -> list[Change]:
        """Make streams, queues, consumers and groups what a file declares. Doing it again changes nothing.

        What does not exist is created, with its settings; what differs is altered. A setting that the file does not give gets its
        default. All errors in the file are found before anything is changed; an outage may leave some of it undone.

        Args:
            source: The path of a TOML file, or a mapping of the same form. See docs/how-to/declare-streams.md.
            dry_run: Change nothing; return what would be done.
            prune: Remove what the file does not have: streams, with all their messages, and consumers. Otherwise they stay.

        Returns:
            A `Change` for each of them, also for those that are the same.

        Raises:
            InvalidInput: The file is not valid; the error names the place.
            Conflict: Something differs that cannot be changed, such as the type of a stream's data.
        """
        wanted = declaration.read(source)
        found = await self._find({each.stream for each in wanted.declared})
        for each in wanted.declared:
            await self._recognize_path(each, found)
        changes = difference(wanted, found, prune=prune)
        if dry_run:
            return changes
        todo = [each for each in zip(wanted.declared, changes, strict=False) if each[1].action in ("create", "change")]
        # All streams first: a consumer may name another for copies of its dead letters.
        for each, change in todo:
            if each.kind in ("stream", "queue"):
                await self._make_stream(each, change, found)
        for each, change in todo:
            if each.kind != "stream":
                await self._make_reader(each, change, found)
        for change in changes:
            if change.action == "remove":
                await self._remove(change)
        return changes

    async def export(self) -> dict[str, Any]:
        """All streams, queues, consumers and groups, in the form that `apply` takes. Settings at their defaults are left out."""
        return exported(await self._find(None))

    async def _find(self, names: set[str] | None) -> Found:
        """All streams, and what reads some of them, or all."""
        by_name = {info.name: info for info in await self._transport.run(streams.list_all())}
        readers = {}
        for name, info in by_name.items():
            # Only those may be queues.
            if names is None or name in names or info.until_acked:
                with suppress(NotFound):
                    readers[name] = {each.name: each for each in await self._transport.run(consumers.list_all(name))}
        return Found(by_name, readers)

    async def _recognize_path(self, each: Declared, found: Found) -> None:
        """Where a consumer has the JSON path of the file, which Postgres writes in its own way, take it as the file writes it.

        Raises:
            InvalidInput: The path is not valid.
        """
        info = found.consumers.get(each.stream, {}).get(each.name)
        path = each.settings["filter"].data if "filter" in each.settings else None
        if info is None or info.is_group or path is None or info.filter_data in (None, path):
            return
        # It exists, so this only compares.
        compare = consumers.create(
            each.stream,
            each.name,
            {"filter": Filter(data=path)},
            start=None,
            from_seq=None,
            from_time=None,
            exist_ok=True,
        )
        with suppress(Conflict):
            await self._transport.run(compare)
            found.consumers[each.stream][each.name] = replace(info, filter_data=path)

    async def _make_stream(self, each: Declared, change: Change, found: Found) -> None:
        if each.stream not in found.streams:
            await self._transport.run(streams.create(each.stream, _chosen(each, _OF_STREAMS), exist_ok=True))
            return
        values, unset = _altered(each, [name for name in change.settings if name in _OF_STREAMS])
        if values or unset:
            await self._transport.run(streams.alter(each.stream, values, unset))

    async def _make_reader(self, each: Declared, change: Change, found: Found) -> None:
        if found.has(each):
            values, unset = _altered(each, [name for name in change.settings if name in _OF_CONSUMERS])
            if values or unset:
                await self._transport.run(consumers.alter(each.stream, each.name, values, unset))
            return
        start: dict[str, Any] = {"start": each.start, "from_seq": None, "from_time": None, "exist_ok": True}
        chosen = _chosen(each, _OF_CONSUMERS)
        if each.kind != "group":
            await self._transport.run(consumers.create(each.stream, each.name, chosen, **start))
            return
        group = {"keep_unread": False, "expire_after": None} | chosen
        await self._transport.run(groups.create(each.stream, each.name, **group, **start))

    async def _remove(self, change: Change) -> None:
        # Another apply may have been faster.
        with suppress(NotFound):
            if change.kind in ("stream", "queue"):
                await self._transport.run(streams.drop(change.stream))
                self._transport.forget(change.stream)
            elif change.kind == "group":
                await self._transport.run(groups.drop(change.stream, change.name))
            else:
                await self._transport.run(consumers.drop(change.stream, change.name))


def _chosen(each: Declared, kind: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of something new that are not at their defaults."""
    return {
        name: each.settings[name]
        for name, setting in kind.items()
        if name in each.settings and each.settings[name] != comparable(setting, setting.default)
    }


def _altered(each: Declared, names: Iterable[str]) -> tuple[dict[str, Any], list[str]]:
    """The settings to change, and those to put back to none."""
    values: dict[str, Any] = {}
    unset: list[str] = []
    for name in names:
        value = each.settings[name]
        if name == "filter":
            unset += [part for field, part in _FILTER_PARTS.items() if getattr(value, field) is None]
            if value != Filter():
                values[name] = value
        elif value is None:
            unset.append(name)
        else:
            values[name] = list(value) if isinstance(value, tuple) else value
    return values, unset
