"""The search box: a stream, a consumer, a message by seq, or messages by key."""

from __future__ import annotations

import re
from typing import Final

from postbus.server.console.pages import overview
from postbus.server.console.visit import Redirect, Visit

_seq: Final = re.compile(r"(.+)#([\d,]+)").fullmatch
_key: Final = re.compile(r"(\S+)\s+(?:key:)?\s*(\S+)").fullmatch


async def find(visit: Visit) -> Redirect:
    """The page that is meant; if none is, the streams whose names contain the words."""
    text = visit.query.get("q", "").strip()
    found = await overview.visible(visit)
    names = {each.name for each in found.streams}
    if text in names:
        return Redirect(visit.to("streams", text))
    message = _seq(text)
    if message is not None and message[1] in names:
        return Redirect(visit.to("streams", message[1], "messages", message[2].replace(",", "")))
    by_key = _key(text)
    if by_key is not None and by_key[1] in names:
        return Redirect(visit.to("streams", by_key[1], "messages", key=by_key[2]))
    readers = [each for each in found.consumers if each.name == text]
    if len(readers) == 1:
        return Redirect(visit.to("streams", readers[0].stream, "consumers", text))
    return Redirect(visit.to("consumers" if readers else "streams", q=text))
