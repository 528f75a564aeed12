"""Clients of SQS: boto3 as it is, and botocore taught the Query protocol, as older SDKs spoke it."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any, Final

import boto3
import botocore.session
from botocore.config import Config

# What lists and maps are called in the Query protocol. Botocore's model of today has only the names of the JSON protocol.
_ITEMS: Final = {
    "AWSAccountIdList": "AWSAccountId",
    "ActionNameList": "ActionName",
    "AttributeNameList": "AttributeName",
    "BatchResultErrorEntryList": "BatchResultErrorEntry",
    "ChangeMessageVisibilityBatchRequestEntryList": "ChangeMessageVisibilityBatchRequestEntry",
    "ChangeMessageVisibilityBatchResultEntryList": "ChangeMessageVisibilityBatchResultEntry",
    "DeleteMessageBatchRequestEntryList": "DeleteMessageBatchRequestEntry",
    "DeleteMessageBatchResultEntryList": "DeleteMessageBatchResultEntry",
    "ListMessageMoveTasksResultEntryList": "ListMessageMoveTasksResultEntry",
    "MessageAttributeNameList": "MessageAttributeName",
    "MessageList": "Message",
    "MessageSystemAttributeList": "MessageSystemAttributeName",
    "QueueUrlList": "QueueUrl",
    "SendMessageBatchRequestEntryList": "SendMessageBatchRequestEntry",
    "SendMessageBatchResultEntryList": "SendMessageBatchResultEntry",
    "TagKeyList": "TagKey",
    "StringList": "StringListValue",
    "BinaryList": "BinaryListValue",
}
_MAPS: Final = {
    "QueueAttributeMap": ("Attribute", "Name", "Value"),
    "MessageSystemAttributeMap": ("Attribute", "Name", "Value"),
    "MessageBodyAttributeMap": ("MessageAttribute", "Name", "Value"),
    "MessageBodySystemAttributeMap": ("MessageSystemAttribute", "Name", "Value"),
    "TagMap": ("Tag", "Key", "Value"),
}
PROTOCOLS: Final = ("json", "query")


@cache
def model() -> dict[str, Any]:
    """Botocore's model of SQS."""
    found: dict[str, Any] = botocore.session.get_session().get_service_data("sqs")
    return found


@cache
def _query_model() -> dict[str, Any]:
    found = copy.deepcopy(model())
    metadata = found["metadata"]
    for gone in ("awsQueryCompatible", "jsonVersion", "targetPrefix"):
        metadata.pop(gone, None)
    metadata |= {
        "protocol": "query",
        "protocols": ["query"],
        "xmlNamespace": "http://queue.amazonaws.com/doc/2012-11-05/",
    }
    shapes = found["shapes"]
    for name, item in _ITEMS.items():
        shapes[name]["member"]["locationName"] = item
        shapes[name]["flattened"] = True
    for name, (_, key, value) in _MAPS.items():
        shapes[name]["key"]["locationName"] = key
        shapes[name]["value"]["locationName"] = value
    for shape in shapes.values():
        for member in shape.get("members", {}).values():
            if member["shape"] in _MAPS:
                member["locationName"] = _MAPS[member["shape"]][0]
    for name, operation in found["operations"].items():
        if "output" in operation:
            operation["output"]["resultWrapper"] = f"{name}Result"
    return found


class _Loader:
    """Loads what botocore has, but SQS as it was in the Query protocol."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def load_service_model(self, service: str, kind: str, api_version: str | None = None) -> Any:
        if service == "sqs" and kind == "service-2":
            return copy.deepcopy(_query_model())
        return self._inner.load_service_model(service, kind, api_version)


def client(
    url: str,
    protocol: str = "json",
    *,
    key: str = "test",
    secret: str = "test",
    region: str = "eu-central-1",
    **more: Any,
) -> Any:
    """A client of a server."""
    session = botocore.session.get_session()
    if protocol == "query":
        session.register_component("data_loader", _Loader(session.get_component("data_loader")))
    return boto3.session.Session(botocore_session=session).client(
        "sqs",
        endpoint_url=url,
        region_name=region,
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        config=Config(retries={"max_attempts": 0}, read_timeout=40, **more),
    )
