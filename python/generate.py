#!/usr/bin/env python3
"""Writes src/carrack/model.py from the API's description: the types of all documents.

    python3 python/generate.py            writes it
    python3 python/generate.py --check    says whether it is what the description has

A document that the service takes refuses unknown fields, and is a TypedDict: it is sent as it stands. A document that
the service answers with may get fields later, and is a dataclass, which leaves out those that it does not know.
"""

from __future__ import annotations

import json
import pathlib
import sys
import textwrap
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
DESCRIPTION = HERE.parent / "crates/carrack-service/openapi.json"
MODEL = HERE / "src/carrack/model.py"
COLUMNS = 120

HEAD = '''"""The documents of the API. Written by generate.py from the API's description: do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Required, TypeAlias, TypedDict
'''

SIMPLE = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "object": "dict[str, Any]",
}

Schema = dict[str, Any]


def main() -> None:
    text = model(json.loads(DESCRIPTION.read_text()))
    if "--check" in sys.argv[1:]:
        if MODEL.read_text() != text:
            sys.exit(f"{MODEL.name} is not what the API's description has: run python3 python/generate.py")
        return
    MODEL.write_text(text)


def model(description: Schema) -> str:
    """The module, from the description."""
    schemas: dict[str, Schema] = description["components"]["schemas"]
    named = {name: schema for name, schema in schemas.items() if not name.startswith("Listed_") and name != "u64"}
    words = [alias(name, schema) for name, schema in named.items() if "properties" not in flat(schema, schemas)]
    sent = [typed_dict(name, schema) for name, schema in named.items() if is_sent(schema)]
    told = [
        data_class(name, flat(schema, schemas), schemas)
        for name, schema in named.items()
        if "properties" in flat(schema, schemas) and not is_sent(schema)
    ]
    return HEAD + "\n" + "".join(words) + "".join(sent) + "".join(told)


def is_sent(schema: Schema) -> bool:
    """Whether the service takes this document: it refuses fields that it does not know."""
    return schema.get("additionalProperties") is False


def flat(schema: Schema, schemas: dict[str, Schema]) -> Schema:
    """A document with the fields of those that it is made of."""
    if "allOf" not in schema:
        return schema
    whole: Schema = {"properties": {}, "required": [], "description": schema.get("description")}
    for part in schema["allOf"]:
        part = schemas[name_of(part)] if "$ref" in part else part
        whole["properties"] |= part["properties"]
        whole["required"] += part.get("required", [])
    return whole


def name_of(schema: Schema) -> str:
    return str(schema["$ref"].rsplit("/", 1)[1])


def type_of(schema: Schema, is_told: bool) -> str:
    """The type of a value; `is_told`: the service answers with it."""
    if "$ref" in schema:
        name = name_of(schema)
        if name == "Moment":
            return "datetime" if is_told else "Moment"
        return "int" if name == "u64" else name
    if "oneOf" in schema:
        return " | ".join(type_of(one, is_told) for one in schema["oneOf"])
    if "enum" in schema:
        words = ", ".join(json.dumps(word) for word in schema["enum"] if word is not None)
        return f"Literal[{words}]" + (" | None" if None in schema["enum"] else "")
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return " | ".join(of_kind(kind, schema, is_told) for kind in kinds)


def of_kind(kind: str, schema: Schema, is_told: bool) -> str:
    if kind == "array":
        return f"list[{type_of(schema['items'], is_told)}]"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"dict[str, {type_of(schema['additionalProperties'], is_told)}]"
    return SIMPLE[kind]


def alias(name: str, schema: Schema) -> str:
    if name == "Moment":
        return "# RFC 3339, or a datetime with a zone.\nMoment: TypeAlias = str | datetime\n"
    if "properties" in schema.get("oneOf", [{}])[0]:  # an object of one of several kinds
        return f"{name}: TypeAlias = dict[str, Any]\n"
    words = type_of(schema, False)
    line = f"{name}: TypeAlias = {words}\n"
    if len(line) <= COLUMNS:
        return line
    inner = ",\n    ".join(json.dumps(word) for word in schema["enum"])
    return f"{name}: TypeAlias = Literal[\n    {inner},\n]\n"


def quoted(text: str | None, indent: str) -> str:
    """A docstring."""
    words = " ".join((text or "").replace("\\", "\\\\").split())
    if not words:
        return ""
    if not words.endswith("."):
        words += "."
    lines = textwrap.wrap(words, COLUMNS - len(indent) - 6)
    if len(lines) == 1:
        return f'{indent}"""{lines[0]}"""\n'
    lines = textwrap.wrap(words, COLUMNS - len(indent) - 3)
    return f'{indent}"""' + f"\n{indent}".join(lines) + f'\n{indent}"""\n'


def typed_dict(name: str, schema: Schema) -> str:
    fields, required = schema["properties"], schema.get("required", [])
    kinds = {key: type_of(value, False) for key, value in fields.items()}
    kinds = {key: f"Required[{kind}]" if key in required else kind for key, kind in kinds.items()}
    if "from" in fields:  # a word of Python: no class can have it
        inner = "".join(f"        {json.dumps(key)}: {json.dumps(kind)},\n" for key, kind in kinds.items())
        return f'\n\n{name} = TypedDict(\n    "{name}",\n    {{\n{inner}    }},\n    total=False,\n)\n'
    text = f"\n\nclass {name}(TypedDict, total=False):\n" + quoted(schema.get("description"), "    ") + "\n"
    for key, value in fields.items():
        text += f"    {key}: {kinds[key]}\n" + described(value)
    return text


def data_class(name: str, schema: Schema, schemas: dict[str, Schema]) -> str:
    fields, required = schema["properties"], schema.get("required", [])
    text = f"\n\n@dataclass(frozen=True)\nclass {name}:\n" + quoted(schema.get("description"), "    ") + "\n"
    for key, value in sorted(fields.items(), key=lambda pair: pair[0] not in required):
        kind, shown = type_of(value, True), f"{key}_" if key == "from" else key
        text += f"    {shown}: {kind}{'' if key in required else default(kind, value, schemas)}\n" + described(value)
    return text


def default(kind: str, schema: Schema, schemas: dict[str, Schema]) -> str:
    """What a field is where the service leaves it out."""
    if "None" in kind.split(" | "):
        return " = None"
    if kind.startswith("list["):
        return " = field(default_factory=list)"
    if kind.startswith("dict["):
        return " = field(default_factory=dict)"
    if "$ref" in schema and "properties" in schemas.get(kind, {}):
        return f" = field(default_factory=lambda: {kind}())"
    return {"bool": " = False", "int": " = 0", "float": " = 0.0", "str": ' = ""'}.get(kind, " | None = None")


def described(schema: Schema) -> str:
    """What the description says of a field, or of one of the forms that it has."""
    texts = [schema.get("description"), *(one.get("description") for one in schema.get("oneOf", []))]
    return quoted(next((text for text in texts if text), None), "    ")


if __name__ == "__main__":
    main()
