"""The channels of a bus's streams."""

from __future__ import annotations

from datetime import timedelta

from postbus.client._async.base import AsyncClient
from postbus.model.channel import ChannelLimits, ChannelState
from postbus.operations import channels as operations


class AsyncChannels(AsyncClient):
    """Limits the channels of streams, and says why their messages wait; get it from `bus.channels`.

    A channel is the messages of one tenant: those whose keys begin with the same tokens, as many as the stream's `channel_tokens`
    says. Limits hold for each consumer by itself, for channels that match their pattern; of several patterns, the most specific
    counts. Consumers that take turns between channels have `fair`.
    """

    async def set(
        self,
        stream: str,
        pattern: str,
        *,
        max_concurrency: int | None = None,
        max_rate: int | None = None,
        per: float | timedelta = 1,
        burst: int = 1,
        weight: int = 1,
        paused: bool = False,
    ) -> None:
        """Set the limits of a pattern, in place of those that it had. They count from the next receive on.

        Args:
            stream: The stream's name.
            pattern: The name of a channel, or a pattern of names: `*` is one token, `>` one or more at the end.
            max_concurrency: How many messages of a channel a consumer may have in flight.
            max_rate: How many it gets of a channel in each `per`, retries included.
            per: The time of `max_rate`, in seconds.
            burst: How many it gets at once after a pause.
            weight: How much of a turn a channel has, where a consumer is fair.
            paused: It gets none.

        Raises:
            InvalidInput: A limit is out of range, or the pattern is not allowed.
            NotFound: The stream does not exist.
            Conflict: The stream has no channels, or a consumer in another order than "none".
        """
        call = operations.set_limits(
            stream,
            pattern,
            max_concurrency=max_concurrency,
            max_rate=max_rate,
            per=per,
            burst=burst,
            weight=weight,
            paused=paused,
        )
        await self._transport.run(call)

    async def remove(self, stream: str, pattern: str) -> bool:
        """Remove the limits of a pattern. Its channels then have those of another pattern, or none.

        Returns:
            Whether it had limits.

        Raises:
            NotFound: The stream does not exist.
        """
        return await self._transport.run(operations.remove(stream, pattern))

    async def pause(self, stream: str, pattern: str) -> None:
        """Give out no messages of these channels until `resume`. Their other limits stay as they are.

        Raises:
            InvalidInput: The pattern is not allowed.
            NotFound: The stream does not exist.
            Conflict: As for `set`.
        """
        await self._transport.run(operations.pause(stream, pattern))

    async def resume(self, stream: str, pattern: str) -> bool:
        """Let a paused pattern go on.

        Returns:
            Whether it was paused.

        Raises:
            NotFound: The stream does not exist.
        """
        return await self._transport.run(operations.resume(stream, pattern))

    async def list_all(self, stream: str) -> list[ChannelLimits]:
        """The limits of a stream's channels, by pattern.

        Raises:
            NotFound: The stream does not exist.
        """
        return await self._transport.run(operations.list_all(stream))

    async def states(self, stream: str, consumer: str, *, max_channels: int = 100) -> list[ChannelState]:
        """Why messages wait: the channels that have messages in flight, or that wait for their turn, in the order of their turns.

        Channels whose messages are all new to the consumer are not in the list: nothing holds them.

        Raises:
            InvalidInput: max_channels is not between 1 and 10,000.
            NotFound: The stream or the consumer does not exist.
        """
        return await self._transport.run(operations.states(stream, consumer, max_channels))
