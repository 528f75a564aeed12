"""The recurring schedules of a bus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from postbus.client._async.base import AsyncClient
from postbus.model.duration import as_timedelta
from postbus.model.errors import NotFound
from postbus.model.message import Message
from postbus.model.recurrence import CatchUp, Recurrence
from postbus.model.schedule import ScheduleInfo
from postbus.operations import schedules as operations

_SAME: Final = object()


class AsyncSchedules(AsyncClient):
    """Creates, changes and lists recurring schedules; get it from `bus.schedules`.

    A schedule publishes a message again and again. Each of its times is published once, however many processes run. Its times
    are worked out ahead, for an hour, by every server, every bus that maintains, and `bus.upkeep`.
    """

    async def create(
        self,
        stream: str,
        name: str,
        *,
        cron: str | None = None,
        every: float | timedelta | None = None,
        time_zone: str = "UTC",
        key: str | None = None,
        data: Any = None,
        headers: Mapping[str, str] | None = None,
        ttl: float | timedelta | None = None,
        catch_up: CatchUp = "latest",
        max_catch_up: int = 100,
        exist_ok: bool = False,
        priority: int = 4,
    ) -> None:
        """Create a schedule. Give either `cron` or `every`.

        Args:
            stream: The stream that it publishes to.
            name: Its name, unique in the stream.
            cron: A cron expression, such as "30 2 * * MON-FRI"; with six fields, the first is seconds. @daily and its like too.
            every: An interval, in seconds, of at least one. Its grid begins now, and does not depend on what runs when.
            time_zone: The zone of the expression, such as "Europe/Berlin". An hour that is left out when clocks change moves
                a time to the next one that exists; an hour that comes twice fires once.
            key: The key of each message.
            data: The data of each message.
            headers: The headers of each message. `postbus-schedule` and `postbus-occurrence` are added.
            ttl: The time to live of each message.
            catch_up: What to publish of times that were missed by more than a minute: the latest, all, or none (skip).
            max_catch_up: With "all", at most so many, the newest.
            exist_ok: Accept that it exists, if it is the same.
            priority: The priority of each message, 0 to 9.

        Raises:
            InvalidInput: The expression never fires, the zone is unknown, or the message is not valid.
            NotFound: The stream does not exist.
            Conflict: The schedule exists.
        """
        Recurrence(cron, as_timedelta(every), time_zone, datetime.now(UTC)).check()
        message = Message(key=key, data=data, headers=headers, priority=priority)
        await self._transport.run(
            operations.create(
                stream,
                name,
                message,
                cron=cron,
                every=every,
                time_zone=time_zone,
                ttl=ttl,
                catch_up=catch_up,
                max_catch_up=max_catch_up,
                exist_ok=exist_ok,
            )
        )
        await self.fill()

    async def alter(
        self,
        stream: str,
        name: str,
        *,
        cron: str | None = None,
        every: float | timedelta | None = None,
        time_zone: str | None = None,
        key: str | None = None,
        data: Any = _SAME,
        headers: Mapping[str, str] | None = None,
        ttl: float | timedelta | None = None,
        catch_up: CatchUp | None = None,
        max_catch_up: int | None = None,
        unset: Sequence[str] = (),
        priority: int | None = None,
    ) -> None:
        """Change a schedule. What is left out stays as it is; `cron` replaces `every`, and the other way round.

        Args:
            stream: Its stream.
            name: Its name.
            cron: See `create`.
            every: See `create`. The grid begins anew.
            time_zone: See `create`.
            key: See `create`.
            data: See `create`.
            headers: See `create`.
            ttl: See `create`.
            catch_up: See `create`.
            max_catch_up: See `create`.
            unset: What to put back to none: key, headers, ttl.
            priority: See `create`.

        Raises:
            InvalidInput: The expression never fires, the zone is unknown, or the message is not valid.
            NotFound: The stream or the schedule does not exist.
        """
        if cron is not None or time_zone is not None:
            known = await self.info(stream, name)
            rule = cron if cron is not None or every is not None else known.cron
            Recurrence(rule, as_timedelta(every), time_zone or known.time_zone, datetime.now(UTC)).check()
        has_data = data is not _SAME
        await self._transport.run(
            operations.alter(
                stream,
                name,
                message=Message(key=key, data=data if has_data else None, headers=headers),
                has_data=has_data,
                cron=cron,
                every=every,
                time_zone=time_zone,
                ttl=ttl,
                catch_up=catch_up,
                max_catch_up=max_catch_up,
                unset=unset,
                priority=priority,
            )
        )
        await self.fill()

    async def drop(self, stream: str, name: str) -> None:
        """Remove a schedule. What it has published stays.

        Raises:
            NotFound: The stream or the schedule does not exist.
        """
        await self._transport.run(operations.drop(stream, name))

    async def pause(self, stream: str, name: str) -> None:
        """Stop a schedule until `resume`. Times that pass meanwhile are not published later.

        Raises:
            NotFound: The stream or the schedule does not exist.
        """
        await self._transport.run(operations.pause(stream, name))

    async def resume(self, stream: str, name: str) -> None:
        """Continue a schedule from now on.

        Raises:
            NotFound: The stream or the schedule does not exist.
        """
        await self._transport.run(operations.resume(stream, name))
        await self.fill()

    async def run_now(self, stream: str, name: str) -> int:
        """Publish the message of a schedule now, also when it is paused. Its times stay as they are.

        Returns:
            The message's seq.

        Raises:
            NotFound: The stream or the schedule does not exist.
        """
        return await self._transport.run(operations.run_now(stream, name))

    async def list_all(self, stream: str | None = None) -> list[ScheduleInfo]:
        """All schedules, or those of a stream, by stream and name."""
        return await self._transport.run(operations.list_all(stream))

    async def info(self, stream: str, name: str) -> ScheduleInfo:
        """A schedule, with its next times and its last runs.

        Raises:
            NotFound: The stream or the schedule does not exist.
        """
        found = await self._transport.run(operations.info(stream, name))
        if found is None:
            raise NotFound(f'schedule "{name}" of stream "{stream}" does not exist')
        return found

    async def fill(self) -> int:
        """Work out the times of the next hour, where that is due. Over HTTP the server does it.

        Returns:
            For how many schedules it was done.
        """
        return await self._transport.fill_schedules()
