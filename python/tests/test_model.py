"""The client against the API's description: every document, field, code and route."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import pathlib
import re
import subprocess
import sys
import typing
from datetime import UTC, datetime
from typing import Any

import pytest
from support import TREE

from carrack import Client, client, errors, files, model
from carrack._decode import decode, to_json

API = json.loads((TREE / "crates/carrack-service/openapi.json").read_text())
SCHEMAS: dict[str, dict[str, Any]] = API["components"]["schemas"]

# Routes that operators and the page use, and `Client.call` reaches.
LEFT_OUT = {
    "GET /audit", "GET /endpoints/{}/bench", "POST /endpoints/{}/bench", "GET /endpoints/{}/paths/{}",
    "POST /endpoints/{}/paths/{}", "GET /endpoints/{}/files/archive",
    "POST /endpoints/{}/grants", "GET /listings/{}/names", "POST /login", "POST /logout", "GET /nodes", "GET /overview",
    "POST /password", "POST /tasks/acts", "POST /tasks/cancel", "GET /tasks/{}/events", "GET /tokens", "POST /tokens",
    "GET /tasks/{}/in-flight", "DELETE /tokens/{}", "GET /users", "POST /users", "GET /users/{}", "PATCH /users/{}",
    "POST /users/{}/links", "DELETE /users/{}/sessions",
}  # fmt: skip


def test_model_is_written_from_the_description() -> None:
    done = subprocess.run([sys.executable, TREE / "python/generate.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def fields_of(schema: dict[str, Any]) -> tuple[set[str], set[str]]:
    """Fields of a document, and those that are always there."""
    parts = schema.get("allOf", [schema])
    whole = [SCHEMAS[part["$ref"].rsplit("/", 1)[1]] if "$ref" in part else part for part in parts]
    names = {name for part in whole for name in part["properties"]}
    return names, {name for part in whole for name in part.get("required", [])}


@pytest.mark.parametrize("name", sorted(name for name in SCHEMAS if not name.startswith("Listed_")))
def test_document_has_the_fields_of_the_description(name: str) -> None:
    schema = SCHEMAS[name]
    if "properties" not in schema and "allOf" not in schema:
        words = schema.get("enum")
        assert words is None or list(typing.get_args(getattr(model, name))) == words
        return
    names, required = fields_of(schema)
    kind = getattr(model, name)
    if schema.get("additionalProperties") is False:
        hints = typing.get_type_hints(kind, include_extras=True)
        assert set(hints) == names
        assert {key for key in hints if typing.get_origin(hints[key]) is typing.Required} == required
    else:
        told = {field.name.rstrip("_"): field for field in dataclasses.fields(kind)}
        assert set(told) == names
        missing = dataclasses.MISSING
        always = {key for key, field in told.items() if field.default is missing and field.default_factory is missing}
        assert always == required


def test_codes_are_exceptions() -> None:
    assert set(errors.ServiceError.by_code) == set(SCHEMAS["ProblemCode"]["enum"])
    assert all(kind.__doc__ and kind.__doc__.strip() for kind in errors.ServiceError.by_code.values())


def asked_routes() -> set[str]:
    """The routes that the client's source asks, from its literals."""
    found = set()
    for module in (client, files):
        source = pathlib.Path(inspect.getfile(module)).read_text()
        at = "/endpoints/{}"
        for call in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            if name not in ("_ask", "_rows", "call", "_lines"):
                continue
            texts = [text_of(argument, at) for argument in call.args]
            path = next((text for text in texts if text.startswith("/")), None)
            usual = {"_rows": "GET", "_lines": "POST"}.get(name, "")
            method = next((text for text in texts if re.fullmatch("[A-Z]+", text)), usual)
            if path is not None:
                found.add(f"{method} {path}")
    return found


def text_of(node: ast.expr, at: str) -> str:
    """A literal; `{self._at}` is the path of an endpoint, and all else that is filled in a `{}`."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if not isinstance(node, ast.JoinedStr):
        return ""
    pieces = [part.value if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}" for part in node.values
              if isinstance(part, ast.Constant | ast.FormattedValue)]  # fmt: skip
    return re.sub(r"\{[^}]*\}", "{}", "".join(map(str, pieces)).replace("{self._at}", at))


def test_routes_are_those_of_the_description() -> None:
    described = {
        f"{method.upper()} {re.sub(r'{[^}]*}', '{}', path)}"
        for path, methods in API["paths"].items()
        for method in methods
        if method != "parameters"
    }
    asked = {route for route in asked_routes() if not route.startswith("HEAD ")}
    assert asked - described == set()
    assert described - asked == LEFT_OUT


def test_decoding_leaves_out_what_it_does_not_know_and_refuses_what_is_none() -> None:
    known = {"side": "source", "code": "not-found", "why": "gone", "retryable": "no"}
    assert decode(model.TaskFailure, {**known, "of_tomorrow": 1}).why == "gone"
    with pytest.raises(TypeError):
        decode(model.TaskFailure, {"side": "source"})
    with pytest.raises(TypeError):
        decode(model.Whoami, [])


def test_times_are_sent_with_their_zone() -> None:
    assert to_json(datetime(2030, 1, 1, tzinfo=UTC)) == "2030-01-01T00:00:00+00:00"
    with pytest.raises(ValueError, match="no time zone"):
        to_json(datetime(2030, 1, 1))  # noqa: DTZ001


def test_options_of_a_task_are_those_that_the_service_lists(client: Client) -> None:
    options = [one for group in client.task_options().groups for one in group.options]
    of_options = {one.name for one in options if one.at == "options"}
    assert of_options <= set(typing.get_type_hints(model.TaskOptions))
    assert {one.name for one in options if one.at == "task"} <= set(typing.get_type_hints(model.NewTask))
