"""One request, as the handlers of operations see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from postbus.model.sqs import ServedSqsQueue
from postbus.model.token import Scope, Token
from postbus.operations.call import Call
from postbus.server.requests import Request
from postbus.server.sqs.errors import denied

if TYPE_CHECKING:
    import postbus
    from postbus.server.sqs.known import KnownQueues
    from postbus.server.state import AppState

_Result = TypeVar("_Result")
ACCOUNT: Final = "000000000000"


@dataclass(slots=True)
class SqsCall:
    """One request.

    Attributes:
        state: What all requests of this process share.
        request: The request.
        token: The token it was signed with.
        region: The region that its signature names, for ARNs.
        known: Queues by name, for a second, shared by all requests of the process.
    """

    state: AppState
    request: Request
    token: Token
    region: str
    known: KnownQueues

    @property
    def bus(self) -> postbus.AsyncBus:
        return self.state.connection.bus

    async def run(self, call: Call[_Result]) -> _Result:
        return await self.bus._transport.run(call)

    def demand(self, stream: str, scope: Scope, *also: Scope) -> None:
        """Refuse the request unless its token allows one of these on a stream.

        Raises:
            SqsError: AccessDenied.
        """
        if not any(self.token.may(each, stream) for each in (scope, *also)):
            raise denied(scope)

    def reader(self, queue: ServedSqsQueue) -> postbus.AsyncConsumer:
        return self.bus.consumer(queue.stream, queue.consumer)

    def url_of(self, name: str) -> str:
        """The URL of a queue, at the host and by the scheme by which the client has come."""
        request = self.request
        host = request.header(b"x-forwarded-host") or request.header(b"host") or "localhost"
        scheme = request.header(b"x-forwarded-proto") or self.state.settings.scheme
        return f"{scheme}://{host}/{ACCOUNT}/{name}"

    def arn_of(self, name: str) -> str:
        return f"arn:aws:sqs:{self.region}:{ACCOUNT}:{name}"
