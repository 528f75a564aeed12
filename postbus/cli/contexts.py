"""Stored contexts: a file that only its owner can read. It may refer to secrets instead of containing them."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit, urlunsplit

from postbus.model.errors import InvalidInput, NotFound

_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,63}")
_HTTP: Final = ("http://", "https://")
_SCHEMES: Final = ("postgresql://", "postgres://", *_HTTP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The address of a bus. Each value may be `env:NAME` or `file:PATH`, which is read when it is used.

    Attributes:
        url: `postgresql://…` or `http://…`.
        token: For a server.
        password: For Postgres, if the URL has none.
    """

    url: str
    token: str | None = None
    password: str | None = None

    @property
    def is_http(self) -> bool:
        return resolve(self.url).startswith(_HTTP)

    def resolved(self) -> Context:
        """The same with its secrets looked up, and the password in its place.

        Raises:
            InvalidInput: One is not there, or the URL is not one.
        """
        url = checked_url(resolve(self.url))
        token = None if self.token is None else resolve(self.token)
        if self.password is None:
            return Context(url=url, token=token)
        return Context(url=_with_password(url, resolve(self.password)), token=token)

    def shown(self) -> dict[str, Any]:
        """What may be printed: names of secrets, but no secrets."""
        from postbus.db.url import without_password

        return {"url": without_password(self.url), "token": _shown(self.token), "password": _shown(self.password)}


class Contexts:
    """The contexts of a user, by name, and which one is in use."""

    def __init__(self, path: Path) -> None:
        self._path = path
        stored = _read(path)
        self.in_use: str | None = stored.get("use")
        self.by_name: Mapping[str, Context] = {
            name: Context(**{key: value for key, value in each.items() if key in Context.__slots__})
            for name, each in stored.get("contexts", {}).items()
        }

    def get(self, name: str) -> Context:
        """A context.

        Raises:
            NotFound: There is none of that name.
        """
        if name not in self.by_name:
            close = get_close_matches(name, self.by_name, n=1)
            hint = f'did you mean "{close[0]}"?' if close else f"create it with: postbus context create {name} --url …"
            raise NotFound(f'context "{name}" does not exist', hint)
        return self.by_name[name]

    def put(self, name: str, context: Context, *, use: bool) -> None:
        if not _NAME.fullmatch(name):
            raise InvalidInput(f'"{name}" is not a name', "use letters, digits, _ - and .")
        self._write({**self.by_name, name: context}, name if use else self.in_use)

    def remove(self, name: str) -> None:
        self.get(name)
        kept = {other: context for other, context in self.by_name.items() if other != name}
        self._write(kept, None if self.in_use == name else self.in_use)

    def use(self, name: str | None) -> None:
        """Use this context from now on; None uses no context."""
        if name is not None:
            self.get(name)
        self._write(dict(self.by_name), name)

    def _write(self, contexts: Mapping[str, Context], in_use: str | None) -> None:
        """Replace the file atomically, so that readers see the old one or the new one."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        text = json.dumps(
            {"use": in_use, "contexts": {name: _stored(each) for name, each in contexts.items()}}, indent=2
        )
        handle, temporary = tempfile.mkstemp(dir=self._path.parent, prefix=".contexts-")  # For the owner only.
        try:
            with os.fdopen(handle, "w") as file:
                file.write(text + "\n")
            Path(temporary).replace(self._path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        self.by_name, self.in_use = contexts, in_use


def path(environment: Mapping[str, str]) -> Path:
    """Where the file is: POSTBUS_CONTEXTS, else `postbus/contexts.json` in the user's folder for settings."""
    if environment.get("POSTBUS_CONTEXTS"):
        return Path(environment["POSTBUS_CONTEXTS"])
    home = environment.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "postbus" / "contexts.json"


def resolve(value: str) -> str:
    """A value, or what `env:NAME` or `file:PATH` stands for.

    Raises:
        InvalidInput: The variable or the file is not there.
    """
    if value.startswith("env:"):
        found = os.environ.get(value[4:])
        if not found:
            raise InvalidInput(f"the environment variable {value[4:]} is not set", f"the context refers to it: {value}")
        return found
    if value.startswith("file:"):
        try:
            return Path(value[5:]).expanduser().read_text().strip()
        except OSError as error:
            raise InvalidInput(
                f"{value[5:]} cannot be read: {error.strerror}", f"the context refers to it: {value}"
            ) from error
    return value


def checked_url(url: str) -> str:
    """The URL, if it is one of Postgres or of a server.

    Raises:
        InvalidInput: It is not.
    """
    if not url.startswith(_SCHEMES):
        from postbus.db.url import without_password

        raise InvalidInput(
            f'"{without_password(url)}" is not a URL of Postgres or of a server',
            "it must look like postgresql://user@host/db or http://host:7376",
        )
    return url


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)  # It may hold secrets, and was copied or written by hand.
        found = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InvalidInput(f"{path} is not JSON: {error}", "repair or remove it") from error
    return found if isinstance(found, dict) else {}


def _stored(context: Context) -> dict[str, str]:
    return {name: value for name, value in asdict(context).items() if value is not None}


def _shown(secret: str | None) -> str | None:
    return secret if secret is None or secret.startswith(("env:", "file:")) else "***"


def _with_password(url: str, password: str) -> str:
    parts = urlsplit(url)
    if parts.username is None or parts.password is not None:
        return url
    user, _, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user}:{quote(password, safe='')}@{host}"))
