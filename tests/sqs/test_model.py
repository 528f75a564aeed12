"""Whatever botocore's model allows is answered in the shapes of that model, and never with a 5xx."""

from __future__ import annotations

import secrets
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.model import ListShape, MapShape, ServiceModel, Shape, StructureShape
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from postbus.server.sqs.table import OPERATIONS
from tests.server.serving import Api
from tests.sqs.clients import PROTOCOLS, client, model

SERVICE = ServiceModel(model(), "sqs")
NAMES = sorted(SERVICE.operation_names)
# Values that lead deeper than any text would.
ATTRIBUTES = st.sampled_from(
    [
        *(
            "VisibilityTimeout",
            "DelaySeconds",
            "RedrivePolicy",
            "Policy",
            "FifoQueue",
            "All",
            "QueueArn",
            "KmsMasterKeyId",
        ),
        *("ContentBasedDeduplication", "ApproximateNumberOfMessages", "SentTimestamp", "ReceiveMessageWaitTimeSeconds"),
    ]
)
KNOWN = ["1", "0", "true", "String", "Number", "Binary", "a.fifo", "{}", '{"a":1}']
TEXT = st.text(max_size=20) | st.sampled_from(KNOWN)


def test_every_operation_of_the_model_is_in_the_table_with_its_fields() -> None:
    assert sorted(OPERATIONS) == NAMES
    for name in NAMES:
        wanted = SERVICE.operation_model(name).input_shape
        given = OPERATIONS[name].given
        assert sorted(given.__struct_encode_fields__) == sorted(wanted.members), name
        required = {given.__struct_encode_fields__[given.__struct_fields__.index(each)] for each in given.required}
        # What is missing in a batch has an error of its own.
        assert required == set(wanted.required_members) - {"Entries"}, name


def values(shape: Shape, name: str, made: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    """Values of a shape, some of them those of a queue that exists."""
    if name in made:
        return made[name]
    if isinstance(shape, StructureShape):
        optional = {each: values(inner, each, made) for each, inner in shape.members.items()}
        needed = {each: optional.pop(each) for each in shape.required_members}
        return st.fixed_dictionaries(needed, optional=optional)
    if isinstance(shape, ListShape):
        return st.lists(values(shape.member, "", made), max_size=3)
    if isinstance(shape, MapShape):
        keys = ATTRIBUTES if "Attribute" in shape.key.name else TEXT
        return st.dictionaries(keys, values(shape.value, "", made), max_size=3)
    if shape.name in ("QueueAttributeName", "MessageSystemAttributeName"):
        return ATTRIBUTES
    if shape.type_name == "integer":
        # A wait would make the test slow.
        return st.just(0) if name == "WaitTimeSeconds" else st.integers(-2, 50) | st.integers(-(2**31), 2**31 - 1)
    if shape.type_name == "blob":
        return st.binary(max_size=8)
    if shape.type_name == "boolean":
        return st.booleans()
    return TEXT


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("operation", NAMES)
def test_what_the_model_allows_is_answered_in_its_shapes(api: Api, operation: str, protocol: str) -> None:
    # The client refuses nothing by itself, and checks MD5s.
    sqs = client(api.url, protocol, parameter_validation=False)
    queues = [
        sqs.create_queue(QueueName=f"m-{secrets.token_hex(6)}")["QueueUrl"],
        sqs.create_queue(
            QueueName=f"m-{secrets.token_hex(6)}.fifo",
            Attributes={"FifoQueue": "true", "ContentBasedDeduplication": "true"},
        )["QueueUrl"],
    ]
    handles = []
    for queue in queues:
        sqs.send_message(QueueUrl=queue, MessageBody="x", MessageGroupId="g")
        handles.append(sqs.receive_message(QueueUrl=queue)["Messages"][0]["ReceiptHandle"])
        sqs.send_message(QueueUrl=queue, MessageBody="y", MessageGroupId="h")
    arns = [f"arn:aws:sqs:eu-central-1:000000000000:{queue.rpartition('/')[2]}" for queue in queues]
    made: dict[str, st.SearchStrategy[Any]] = {
        "QueueUrl": st.sampled_from([*queues, "nobody"]),
        "ReceiptHandle": st.sampled_from([*handles, "x"]),
        "SourceArn": st.sampled_from([*arns, "x"]),
        "DestinationArn": st.sampled_from([*arns, "x"]),
        "QueueName": st.just(f"n-{secrets.token_hex(6)}") | TEXT,
        "Id": st.sampled_from(["a", "b", "c", "d e"]),
    }
    described = SERVICE.operation_model(operation)
    call = getattr(sqs, _method(operation))

    @settings(max_examples=15, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(values(described.input_shape, "", made))
    def asked(request: dict[str, Any]) -> None:
        error = None
        try:
            answer = call(**request)
        except ClientError as caught:
            error = caught.response
        if error is not None:
            status = error["ResponseMetadata"]["HTTPStatusCode"]
            assert 400 <= status < 500, (status, error["Error"], request)
            assert error["Error"]["Code"], request
            assert error["ResponseMetadata"].get("RequestId")
            return
        answer.pop("ResponseMetadata")
        check(answer, described.output_shape, operation)

    asked()


def _method(operation: str) -> str:
    from botocore import xform_name

    return str(xform_name(operation))


def check(value: Any, shape: Shape | None, where: str) -> None:
    """Fail unless a value is of its shape."""
    if shape is None:
        assert value == {}, where
    elif isinstance(shape, StructureShape):
        assert set(value) <= set(shape.members), where
        # Amazon leaves out empty lists, whatever its model says.
        missing = set(shape.required_members) - set(value)
        assert all(isinstance(shape.members[each], ListShape) for each in missing), (where, missing)
        for name, inner in value.items():
            check(inner, shape.members[name], f"{where}.{name}")
    elif isinstance(shape, ListShape):
        for each in value:
            check(each, shape.member, where)
    elif isinstance(shape, MapShape):
        for each in value.values():
            check(each, shape.value, where)
    else:
        kinds = {"string": str, "integer": int, "long": int, "blob": bytes, "boolean": bool}
        assert isinstance(value, kinds[shape.type_name]), (where, value)
