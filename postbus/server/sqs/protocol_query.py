"""The Query protocol: forms in, XML out. Older SDKs and the AWS command line of Debian speak it."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

import msgspec

from postbus.server.requests import Response
from postbus.server.sqs.errors import SqsError
from postbus.server.sqs.shapes import Shape

_NAMESPACE: Final = "http://queue.amazonaws.com/doc/2012-11-05/"
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MOST_FIELDS: Final = 1000
# The messages of this protocol differ a little.
_WORDS: Final = {
    "QueueDoesNotExist": "The specified queue does not exist for this wsdl version.",
}

Tree = dict[str, "Tree | str"]


def form_of(query: bytes, body: bytes) -> dict[str, str]:
    """The fields of a request.

    Raises:
        SqsError: They are not a form in UTF-8.
    """
    try:
        text = (query + b"&" + body).decode()
        return dict(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS))
    except (UnicodeDecodeError, ValueError) as error:
        raise SqsError("SerializationException", f"The request is not a form: {error}") from None


def read(form: Mapping[str, str], shape: type[Shape]) -> Any:
    """The input of an operation.

    Raises:
        SqsError: A field is not of its type.
    """
    tree: Tree = {}
    for name, value in form.items():
        *path, last = name.split(".", 8)
        node = tree
        for part in path:
            below = node.setdefault(part, {})
            if isinstance(below, str):
                break
            node = below
        else:
            node.setdefault(last, value)
    try:
        return msgspec.convert(_built(tree, shape), shape, strict=False)
    except msgspec.ValidationError as error:
        raise SqsError("SerializationException", f"The request is not valid: {error}") from None


def answer(operation: str, result: Shape | None, request_id: str) -> Response:
    inner = "" if result is None else f"<{operation}Result>{''.join(_elements(result))}</{operation}Result>"
    body = (
        f'<?xml version="1.0"?><{operation}Response xmlns="{_NAMESPACE}">{inner}'
        f"<ResponseMetadata><RequestId>{escape(request_id)}</RequestId></ResponseMetadata></{operation}Response>"
    )
    return Response(body.encode(), 200, {"x-amzn-requestid": request_id}, "text/xml")


def refusal(error: SqsError, request_id: str) -> Response:
    message = _WORDS.get(error.name, error.message)
    body = (
        f'<?xml version="1.0"?><ErrorResponse xmlns="{_NAMESPACE}"><Error>'
        f"<Type>{'Sender' if error.is_senders else 'Receiver'}</Type><Code>{error.code}</Code>"
        f"<Message>{_text(message)}</Message><Detail/></Error><RequestId>{escape(request_id)}</RequestId></ErrorResponse>"
    )
    return Response(body.encode(), error.status, {"x-amzn-requestid": request_id}, "text/xml")


def _built(tree: Tree, shape: type[Shape]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, (encoded, inner) in _fields(shape).items():
        flat = shape.query.get(name)
        if flat is None:
            value = tree.get(encoded)
            if isinstance(value, str):
                found[encoded] = value
            continue
        nodes = tree.get(flat if isinstance(flat, str) else flat[0])
        if isinstance(nodes, dict):
            found[encoded] = _listed(nodes, inner) if isinstance(flat, str) else _mapped(nodes, flat, inner)
    return found


def _listed(nodes: Tree, inner: Any) -> list[Any]:
    return [_value(node, inner) for node in _in_order(nodes)]


def _mapped(nodes: Tree, flat: tuple[str, str, str], inner: Any) -> dict[str, Any]:
    _, key, value = flat
    found: dict[str, Any] = {}
    for node in _in_order(nodes):
        if not isinstance(node, dict) or not isinstance(name := node.get(key), str):
            raise SqsError("MissingRequiredParameterException", f"The request must contain the parameter {key}.")
        found[name] = _value(node.get(value, {} if _is_shape(inner) else ""), inner)
    return found


def _value(node: Tree | str, inner: Any) -> Any:
    if _is_shape(inner):
        return _built(node if isinstance(node, dict) else {}, inner)
    return node


def _in_order(nodes: Tree) -> Iterator[Tree | str]:
    """Elements 1, 2, …; what has no number is not one."""
    numbered = [
        (int(name), node) for name, node in nodes.items() if name.isascii() and name.isdigit() and len(name) < 10
    ]
    return (node for _, node in sorted(numbered, key=lambda each: each[0]))


def _elements(value: Shape) -> Iterator[str]:
    for name, (encoded, _) in _fields(type(value)).items():
        given = getattr(value, name)
        flat = value.query.get(name)
        if given is None:
            continue
        if isinstance(flat, str):
            for each in given:
                yield _element(flat, each)
        elif flat is not None:
            outer, key, content = flat
            for each, inner in given.items():
                yield f"<{outer}>{_element(key, each)}{_element(content, inner)}</{outer}>"
        else:
            yield _element(encoded, given)


def _element(name: str, value: Any) -> str:
    if isinstance(value, Shape):
        content = "".join(_elements(value))
    elif isinstance(value, bool):
        content = "true" if value else "false"
    elif isinstance(value, bytes):
        content = base64.b64encode(value).decode()
    else:
        content = _text(str(value))
    return f"<{name}>{content}</{name}>"


def _text(value: str) -> str:
    """Text as XML can hold it: other characters, which only messages of native publishers may have, are replaced."""
    return escape(_NOT_XML.sub("\ufffd", value), {"\r": "&#xD;", '"': "&quot;"})


def _is_shape(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Shape)


@cache
def _fields(shape: type[Shape]) -> dict[str, tuple[str, Any]]:
    """By field: its name in both protocols, and the type of what is in its list or map."""
    hints = get_type_hints(shape)
    return {each.name: (each.encode_name, _inner(hints[each.name])) for each in msgspec.structs.fields(shape)}


def _inner(hint: Any) -> Any:
    options = [hint] if get_origin(hint) in (list, dict) else list(get_args(hint))
    for option in options:
        if get_origin(option) in (list, dict):
            return get_args(option)[-1]
    return None
