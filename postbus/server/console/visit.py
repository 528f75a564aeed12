"""One request of the console, and what pages need to know of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote, unquote, urlencode

from postbus.html.markup import Html
from postbus.model.token import Scope, Token
from postbus.server.problems import Problem, not_in_scope
from postbus.server.requests import Request

if TYPE_CHECKING:
    import postbus
    from postbus.operations.call import Call
    from postbus.server.console.figures import FigureCache
    from postbus.server.state import AppState

Result = TypeVar("Result")
PATH: Final = "/console/"


@dataclass(slots=True)
class Visit:
    """One authorized request of the console.

    Attributes:
        state: What all requests of this process share.
        figures: The figures that all pages share.
        request: The request.
        token: The token of the session.
        query: The parameters of the address.
        form: The fields of a form that was sent. A field that was sent several times is joined by commas.
        cookies: The cookies.
        headers: Headers of the response.
    """

    state: AppState
    figures: FigureCache
    request: Request
    token: Token
    query: Mapping[str, str]
    form: Mapping[str, str]
    cookies: Mapping[str, str]
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def bus(self) -> postbus.AsyncBus:
        return self.state.connection.bus

    @property
    def is_read_only(self) -> bool:
        """Whether this server's console changes nothing, whatever a token allows."""
        return self.state.settings.console == "read-only"

    @property
    def stream(self) -> str:
        return self.request.parameters["stream"]

    @property
    def consumer(self) -> str:
        return self.request.parameters["consumer"]

    @property
    def root(self) -> str:
        """The way from this page to the console's first: addresses are relative, so that a proxy may add a prefix."""
        return "../" * (self.request.raw_path.removeprefix(PATH).count("/")) or "./"

    def to(self, *path: object, **query: object) -> str:
        """The address of a page. None leaves a parameter out."""
        given = {name: value for name, value in query.items() if value is not None and value != ""}
        written = "/".join(quote(str(part), safe="") for part in path)
        return self.root + written + ("?" + urlencode(given) if given else "")

    def here(self, **query: object) -> str:
        """This page with other parameters. None leaves one out."""
        return self.to(*map(unquote, self.request.raw_path.removeprefix(PATH).split("/")), **{**self.query, **query})

    def may(self, scope: Scope, stream: str | None) -> bool:
        """Whether forms for this are shown. What is sent is checked again."""
        return not self.is_read_only and self.token.may(scope, stream)

    def demand(self, scope: Scope, stream: str | None) -> None:
        """Refuse the request unless its token allows this.

        Raises:
            Problem: 403.
        """
        if not self.token.may(scope, stream):
            raise not_in_scope(scope, "on all streams" if stream is None else f'on stream "{stream}"')

    def demand_change(self) -> None:
        """Refuse a form where pages may only be looked at.

        Raises:
            Problem: 403.
        """
        if self.is_read_only:
            raise Problem(403, "forbidden", "this console is read-only", hint="start the server with --console on")

    def demand_all(self, scope: Scope) -> None:
        """Refuse the request unless its token allows looking at what concerns all streams.

        Raises:
            Problem: 403.
        """
        if not self.token.may(scope, None):
            raise not_in_scope(scope, "on all streams")

    def demand_sight(self, stream: str) -> None:
        """Refuse the request unless its token is for this stream, whatever it allows there.

        Raises:
            Problem: 403.
        """
        if not self.token.sees(stream):
            raise not_in_scope("consume", f'on stream "{stream}"')

    async def run(self, call: Call[Result]) -> Result:
        """Run an operation."""
        return await self.bus.transport.run(call)


@dataclass(frozen=True, slots=True)
class Page:
    """What a page shows.

    Attributes:
        title: Its title.
        body: What it shows.
        crumbs: The pages above it: words and addresses.
        tab: Which entry of the menu it belongs to.
        status: The status of the response.
    """

    title: str
    body: Html
    crumbs: tuple[tuple[str, str], ...] = ()
    tab: str = ""
    status: int = 200


@dataclass(frozen=True, slots=True)
class Redirect:
    """Another page, and what to say there.

    Attributes:
        to: Its address.
        said: What was done.
    """

    to: str
    said: str = ""


@dataclass(frozen=True, slots=True)
class Download:
    """A file.

    Attributes:
        name: Its name.
        content_type: What it is.
        body: Its bytes.
    """

    name: str
    content_type: str
    body: bytes


Shown = Page | Redirect | Download


def whole_number(text: Any, name: str, *, least: int = 0) -> int:
    """A field as a number.

    Raises:
        Problem: 400.
    """
    try:
        number = int(str(text).replace(",", "").strip())
    except ValueError:
        number = least - 1
    if not least <= number < 2**63:
        raise Problem(400, "invalid", f"{name} is not a number of at least {least}", hint="write digits only")
    return number
