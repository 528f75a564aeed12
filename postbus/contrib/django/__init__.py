"""Django: publish in the transaction of a request, and a backend for Django's tasks.

    INSTALLED_APPS = [..., "postbus.contrib.django"]
    TASKS = {"default": {"BACKEND": "postbus.contrib.django.PostbusBackend"}}

`manage.py migrate` then installs Postbus in the default database, and `manage.py postbus_worker` runs tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from postbus.contrib.django.backend import PostbusBackend
    from postbus.contrib.django.publishing import publish

__all__ = ["PostbusBackend", "publish"]


def __getattr__(name: str) -> Any:
    # Apps are loaded before settings may be used.
    if name == "publish":
        from postbus.contrib.django.publishing import publish

        return publish
    if name == "PostbusBackend":
        from postbus.contrib.django.backend import PostbusBackend

        return PostbusBackend
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
