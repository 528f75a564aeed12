"""The JSON protocol (application/x-amz-json-1.0), which SDKs speak since 2023."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec

from postbus.server.requests import Response
from postbus.server.sqs.errors import SqsError
from postbus.server.sqs.shapes import Shape

_TARGET: Final = "AmazonSQS."
_TYPE: Final = "application/x-amz-json-1.0"
_encode: Final = msgspec.json.Encoder().encode


def operation_of(target: str) -> str:
    """The operation that the header X-Amz-Target names."""
    return target.removeprefix(_TARGET)


def read(body: bytes, shape: type[Shape]) -> Any:
    """The input of an operation.

    Raises:
        SqsError: The body is not JSON, or not of its shape.
    """
    try:
        return _decoder(shape).decode(body or b"{}")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise SqsError("SerializationException", f"The request is not valid: {error}") from None


def answer(result: Shape | None, request_id: str) -> Response:
    body = b"{}" if result is None else _encode(result)
    return Response(body, 200, {"x-amzn-requestid": request_id}, _TYPE)


def refusal(error: SqsError, request_id: str) -> Response:
    fault = "Sender" if error.is_senders else "Receiver"
    headers = {"x-amzn-requestid": request_id, "x-amzn-query-error": f"{error.code};{fault}"}
    body = _encode({"__type": f"com.amazonaws.sqs#{error.name}", "message": error.message})
    return Response(body, error.status, headers, _TYPE)


@cache
def _decoder(shape: type[Shape]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(shape)
