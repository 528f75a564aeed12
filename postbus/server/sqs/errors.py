"""The errors of SQS: each with its name in both protocols."""

from __future__ import annotations

from typing import Final

_PREFIX: Final = "AWS.SimpleQueueService."
# What the Query protocol calls an error, where that is not its name with the prefix.
_QUERY_CODES: Final = {
    "QueueDoesNotExist": _PREFIX + "NonExistentQueue",
    "QueueNameExists": "QueueAlreadyExists",
    "OverLimit": "OverLimit",
    "InvalidMessageContents": "InvalidMessageContents",
    "InvalidAttributeName": "InvalidAttributeName",
    "InvalidAttributeValue": "InvalidAttributeValue",
    "ReceiptHandleIsInvalid": "ReceiptHandleIsInvalid",
    "ResourceNotFoundException": "ResourceNotFoundException",
    "InvalidParameterValueException": "InvalidParameterValue",
    "MissingRequiredParameterException": "MissingParameter",
    "AccessDeniedException": "AccessDenied",
    "UnrecognizedClientException": "InvalidClientTokenId",
    "InvalidSignatureException": "SignatureDoesNotMatch",
    "MissingAuthenticationTokenException": "MissingAuthenticationToken",
    "UnknownOperationException": "InvalidAction",
    "SerializationException": "MalformedInput",
    "RequestThrottled": "RequestThrottled",
    "ServiceUnavailable": "ServiceUnavailable",
    "InternalFailure": "InternalFailure",
}
_STATUSES: Final = {
    "PurgeQueueInProgress": 403,
    "OverLimit": 403,
    "ResourceNotFoundException": 404,
    "AccessDeniedException": 403,
    "UnrecognizedClientException": 403,
    "InvalidSignatureException": 403,
    "MissingAuthenticationTokenException": 403,
    "RequestThrottled": 403,
    "ServiceUnavailable": 503,
    "InternalFailure": 500,
}


class SqsError(Exception):
    """An answer that is an error.

    Attributes:
        name: Its name in the JSON protocol.
        message: What is wrong.
    """

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name
        self.message = message

    @property
    def code(self) -> str:
        """Its name in the Query protocol, which clients of the JSON protocol get by a header."""
        return _QUERY_CODES.get(self.name, _PREFIX + self.name)

    @property
    def status(self) -> int:
        return _STATUSES.get(self.name, 400)

    @property
    def is_senders(self) -> bool:
        """Whether the sender is at fault."""
        return self.status < 500


def no_such_queue() -> SqsError:
    return SqsError("QueueDoesNotExist", "The specified queue does not exist.")


def missing(parameter: str) -> SqsError:
    return SqsError("MissingRequiredParameterException", f"The request must contain the parameter {parameter}.")


def invalid(parameter: str, value: object, reason: str) -> SqsError:
    return invalid_value(f"Value {value} for parameter {parameter} is invalid. Reason: {reason}")


def invalid_value(message: str) -> SqsError:
    return SqsError("InvalidParameterValueException", message)


def bad_attribute(name: str) -> SqsError:
    return SqsError("InvalidAttributeName", f"Unknown Attribute {name}.")


def bad_attribute_value(name: str) -> SqsError:
    return SqsError("InvalidAttributeValue", f"Invalid value for the parameter {name}.")


def unsupported(message: str) -> SqsError:
    return SqsError("UnsupportedOperation", message)


def denied(scope: str) -> SqsError:
    return SqsError("AccessDeniedException", f'This access key does not allow "{scope}" on this queue.')
