"""Push consumers: set, change and remove endpoints, see attempts, send again."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, Struct, UnsetType

from postbus.model.push import AttemptOutcome, PushMode
from postbus.operations import push
from postbus.server.endpoint import Call, Endpoints
from postbus.server.fields import Delay, Limit, Seq, Time, given, moment, seconds
from postbus.server.responses import Count, Data, Success
from postbus.server.responses.push import Attempt, Push, attempt
from postbus.server.responses.push import push as shown

endpoints = Endpoints()

Url = Annotated[str, Meta(max_length=2000, description="https://…", extra_json_schema={"format": "webhook-url"})]
HeaderName = Annotated[str, Meta(extra_json_schema={"format": "header-name"})]
HeaderValue = Annotated[str, Meta(pattern=r"^[ -~]*$", max_length=4000)]
Status = Annotated[int, Meta(ge=300, le=599)]
MaxRate = Annotated[
    float,
    Meta(
        le=1_000_000,
        description="Requests per second; 0 sets no limit",
        extra_json_schema={"anyOf": [{"const": 0}, {"minimum": 0.001}]},
    ),
]


class NewPush(Struct, forbid_unknown_fields=True):
    """What is left out stays as it is, and takes its default at first. `url` is needed at first."""

    url: Url | UnsetType = UNSET
    headers: dict[HeaderName, HeaderValue] | UnsetType = UNSET
    mode: PushMode | UnsetType = UNSET
    batch_size: Annotated[int, Meta(ge=1, le=1000)] | UnsetType = UNSET
    timeout_ms: Annotated[int, Meta(ge=1000, le=120_000)] | UnsetType = UNSET
    concurrency: Annotated[int, Meta(ge=1, le=1000)] | UnsetType = UNSET
    max_rate: MaxRate | UnsetType = UNSET
    retry_schedule_ms: Annotated[list[Delay], Meta(max_length=100)] | UnsetType = UNSET
    permanent_statuses: Annotated[list[Status], Meta(max_length=100)] | UnsetType = UNSET
    keep_successes: bool | UnsetType = UNSET


class PushReason(Struct, forbid_unknown_fields=True):
    reason: Annotated[str, Meta(pattern=r"^[^\x00]*$", max_length=200)] = "paused"


class NewSecret(Struct, forbid_unknown_fields=True):
    """For how long the old secrets are still used, too."""

    keep_old_for_ms: Delay = 86_400_000


class RotatedSecret(Struct):
    """`secret` is shown only in this response."""

    secret: str


class StartedTest(Struct):
    """The attempts with this test_id show its result."""

    test_id: int


class AttemptsQuery(Struct, forbid_unknown_fields=True):
    seq: Seq | None = None
    test_id: Seq | None = None
    outcome: AttemptOutcome | None = None
    before_time: Time | None = None
    limit: Limit = 100


class Resend(Struct, forbid_unknown_fields=True):
    """Either a message, or all that failed since a time: at most `limit` of them."""

    schema_extra: ClassVar[dict[str, Any]] = {"oneOf": [{"required": ["seq"]}, {"required": ["failed_since"]}]}

    seq: Seq | UnsetType = UNSET
    failed_since: Time | UnsetType = UNSET
    limit: Limit = 1000


@endpoints.add(push.SET, invalid_status=422)
async def set_push(call: Call, body: NewPush) -> Data[Push]:
    """Send the messages of a consumer to an endpoint, or change how."""
    if body.url is not UNSET:
        call.state.push_guard.check_url(body.url)
    secret = await call.reader.push.set(
        given(body.url),
        headers=given(body.headers),
        mode=given(body.mode),
        batch_size=given(body.batch_size),
        timeout=seconds(body.timeout_ms),
        concurrency=given(body.concurrency),
        max_rate=given(body.max_rate),
        retry_schedule=None if body.retry_schedule_ms is UNSET else [each / 1000 for each in body.retry_schedule_ms],
        permanent_statuses=given(body.permanent_statuses),
        keep_successes=given(body.keep_successes),
    )
    return Data(shown(await call.reader.push.info(), secret))


@endpoints.add(push.INFO)
async def get_push(call: Call) -> Data[Push]:
    """Get the endpoint of a consumer, and how it does."""
    return Data(shown(await call.reader.push.info()))


@endpoints.add(push.DROP)
async def remove_push(call: Call) -> Success:
    """Send nothing more to the endpoint of a consumer, and forget it."""
    await call.reader.push.remove()
    return Success()


@endpoints.add(push.PAUSE)
async def pause_push(call: Call, body: PushReason | None = None) -> Data[Push]:
    """Send nothing more to the endpoint of a consumer until it is resumed."""
    await call.reader.push.pause((body or PushReason()).reason)
    return Data(shown(await call.reader.push.info()))


@endpoints.add(push.RESUME)
async def resume_push(call: Call) -> Data[Push]:
    """Send to the endpoint of a consumer again, at once, if it is paused or rests."""
    await call.reader.push.resume()
    return Data(shown(await call.reader.push.info()))


@endpoints.add(push.ROTATE)
async def rotate_push_secret(call: Call, body: NewSecret | None = None) -> Data[RotatedSecret]:
    """Sign requests to the endpoint of a consumer with a new secret, and for a while with the old ones too."""
    keep = (body or NewSecret()).keep_old_for_ms / 1000
    return Data(RotatedSecret(await call.reader.push.rotate_secret(keep_old_for=keep)))


@endpoints.add(push.TEST)
async def test_push(call: Call) -> Data[StartedTest]:
    """Send a test message to the endpoint of a consumer."""
    return Data(StartedTest(await call.reader.push.begin_test()))


@endpoints.add(push.ATTEMPTS)
async def list_push_attempts(call: Call, query: AttemptsQuery) -> Data[list[Attempt]]:
    """List attempts to send to the endpoint of a consumer, newest first."""
    found = await call.reader.push.attempts(
        seq=query.seq,
        test_id=query.test_id,
        outcome=query.outcome,
        before_time=moment(query.before_time),
        max_attempts=query.limit,
    )
    return Data([attempt(each) for each in found])


@endpoints.add(push.RESEND)
async def resend_push(call: Call, body: Resend) -> Data[Count]:
    """Send messages to the endpoint of a consumer again: one, or those that failed since a time."""
    sent = await call.reader.push.resend_page(
        given(body.seq), failed_since=moment(body.failed_since), max_messages=body.limit
    )
    return Data(Count(sent))


@endpoints.add(push.LIST_ALL)
async def list_pushes(call: Call) -> Data[list[Push]]:
    """List the endpoints of all push consumers, and how they do."""
    return Data([shown(each) for each in await call.bus.list_pushes()])
