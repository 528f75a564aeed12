"""A project of Django, as a user would set it up."""

from __future__ import annotations

import os
from urllib.parse import parse_qs, urlsplit

_URL = urlsplit(os.environ.get("POSTBUS_DJANGO_URL", "postgresql:///postgres"))
_QUERY = parse_qs(_URL.query)

SECRET_KEY = "not one"
USE_TZ = True
INSTALLED_APPS = ["postbus.contrib.django", "tests.contrib.django_project"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _URL.path.lstrip("/"),
        "USER": _URL.username or "",
        "PASSWORD": _URL.password or "",
        "HOST": _QUERY.get("host", [_URL.hostname or ""])[0],
        "PORT": _QUERY.get("port", [str(_URL.port or "")])[0],
    }
}
TASKS = {
    "default": {
        "BACKEND": "postbus.contrib.django.PostbusBackend",
        "QUEUES": ["default", "slow"],
        "OPTIONS": {"keep_results": 3600, "max_attempts": 2},
    },
}
