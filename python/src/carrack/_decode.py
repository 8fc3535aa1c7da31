"""JSON to the documents of the API."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from datetime import datetime
from typing import Any, TypeVar, Union

from . import model

Document = TypeVar("Document")


def decode(kind: type[Document], value: Any) -> Document:
    """A document from its JSON. Fields that this version does not know are left out.

    Raises `TypeError` or `ValueError` for what is no such document.
    """
    return typing.cast(Document, _of(kind, value))


def to_json(value: Any) -> Any:
    """What the encoder of JSON does not know."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone: use datetime.now(timezone.utc), or .astimezone()")
        return value.isoformat()
    raise TypeError(f"{value!r} cannot be sent")


@functools.cache
def _fields(kind: Any) -> dict[str, tuple[str, Any]]:
    hints = typing.get_type_hints(kind, vars(model))
    return {field.name: (field.name.rstrip("_"), hints[field.name]) for field in dataclasses.fields(kind)}


def _of(kind: Any, value: Any) -> Any:
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        if not isinstance(value, dict):
            raise TypeError(f"{kind.__name__} was expected, and {type(value).__name__} came")
        given = _fields(kind)
        return kind(**{name: _of(hint, value[key]) for name, (key, hint) in given.items() if key in value})
    if kind is datetime:
        return datetime.fromisoformat(value)
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        return _of(next(one for one in inner if one is not type(None)), value)
    if origin is list:
        return [_of(inner[0], one) for one in value]
    if origin is dict:
        return {key: _of(inner[1], one) for key, one in value.items()}
    # Words and plain values come as they are: a newer service may have a word more.
    return value
