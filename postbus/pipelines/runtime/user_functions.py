"""Functions of users, found by what they write: package.module:name, or path/of/a/file.py:name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from postbus.model.errors import InvalidInput


def check_name(written: str) -> tuple[str, str]:
    """The module or file, and the name in it.

    Raises:
        InvalidInput: It is neither, or there is no such file.
    """
    place, colon, name = written.rpartition(":")
    if not colon or not place or not name:
        raise InvalidInput(f'"{written}" names no function', "write package.module:name, or path/file.py:name")
    if place.endswith(".py") and not Path(place).expanduser().is_file():
        raise InvalidInput(f"there is no file {place}")
    return place, name


def load_function(written: str) -> Callable[..., Any]:
    """The function. What it uses of its module travels with it to Spark's workers, which need not have the module.

    Raises:
        InvalidInput: There is no such module, file or function, or the module fails.
    """
    place, name = check_name(written)
    module = _module(place)
    function = getattr(module, name, None)
    if not callable(function):
        there = [each for each in vars(module) if callable(getattr(module, each)) and not each.startswith("_")]
        raise InvalidInput(f'there is no function "{name}" in {place}', f"it has: {', '.join(there) or 'none'}")
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    found: Callable[..., Any] = function
    return found


def _module(place: str) -> ModuleType:
    try:
        return _from_file(Path(place).expanduser()) if place.endswith(".py") else _by_name(place)
    except Exception as error:
        raise InvalidInput(f"{place} cannot be loaded: {type(error).__name__}: {error}") from error


def _from_file(file: Path) -> ModuleType:
    spec = spec_from_file_location(f"postbus_function_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(str(file))
    module = module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module


def _by_name(name: str) -> ModuleType:
    """A module that is installed, or lies in the present folder."""
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return import_module(name)
