"""The page /docs: the OpenAPI description by subject, with fields and example commands."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_METHODS = ("get", "post", "put", "patch", "delete")
_TEXT = "text"  # example for a string without an example
_DEEPEST = 4  # levels of nested schemas in an example
_LONGEST = 8  # items of a list in an example
_UNCOUNTED = {"true or false", "anything"}
_Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Field:
    """A parameter, or a value in a request or response."""

    name: str
    kind: str
    text: str
    required: bool


@dataclass(frozen=True)
class Form:
    """One format of a request body."""

    kind: str  # the content type
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Reply:
    """A possible response."""

    status: str
    text: str


@dataclass(frozen=True)
class Operation:
    """An endpoint of the service."""

    method: str
    path: str
    summary: str
    text: str
    parameters: tuple[Field, ...]
    forms: tuple[Form, ...]  # a request has one of them
    result: tuple[Field, ...]
    replies: tuple[Reply, ...]
    commands: tuple[str, ...]  # one for each form that looks different

    @property
    def anchor(self) -> str:
        """The anchor of the operation on the page."""
        name = self.path.strip("/").replace("/", "-")
        return self.method.lower() + "-" + "".join(c for c in name if c not in "{}")


@dataclass(frozen=True)
class Subject:
    """Operations that belong together."""

    name: str
    operations: tuple[Operation, ...]


@dataclass(frozen=True)
class Reference:
    """The whole description."""

    title: str
    version: str
    text: str
    origin: str
    subjects: tuple[Subject, ...]


def read_reference(description: _Schema, origin: str) -> Reference:
    """Read the OpenAPI description of an app at an origin: scheme, host and port.

    Examples
    --------
    >>> paths = {"/v1/classes": {"get": {"summary": "Names", "responses": {"200": {}}}}}
    >>> read = read_reference({"info": {"title": "t", "version": "1"}, "paths": paths}, "http://h")
    >>> read.subjects[0].operations[0].commands[0]
    'curl -H "Authorization: Bearer $TOKEN" \\\\\\n  http://h/v1/classes'
    """
    reader = _Reader(description, origin)
    subjects: dict[str, list[Operation]] = {}
    for path, methods in description["paths"].items():
        for method in (m for m in _METHODS if m in methods):
            subject = (methods[method].get("tags") or ["service"])[0]
            subjects.setdefault(subject, []).append(reader.operation(path, method, methods[method]))
    info = description["info"]
    return Reference(
        title=info["title"],
        version=info["version"],
        text=info.get("description", ""),
        origin=origin,
        subjects=tuple(Subject(name, tuple(found)) for name, found in subjects.items()),
    )


class _Reader:
    def __init__(self, description: _Schema, origin: str) -> None:
        self._schemas = description.get("components", {}).get("schemas", {})
        self._origin = origin

    def operation(self, path: str, method: str, definition: _Schema) -> Operation:
        bodies = definition.get("requestBody", {}).get("content", {})
        good: _Schema = next(
            (r for code, r in definition["responses"].items() if code.startswith("2")), {}
        )
        result = good.get("content", {}).get("application/json", {}).get("schema", {})
        return Operation(
            method=method.upper(),
            path=path,
            summary=definition.get("summary", ""),
            text=definition.get("description", ""),
            parameters=tuple(self._parameter(each) for each in definition.get("parameters", ())),
            forms=tuple(
                Form(kind, tuple(self._fields(media.get("schema", {}))))
                for kind, media in bodies.items()
            ),
            result=tuple(self._fields(result)),
            replies=tuple(
                Reply(code, reply.get("description", ""))
                for code, reply in definition["responses"].items()
            ),
            commands=tuple(self._commands(path, method, definition, bodies)),
        )

    def _parameter(self, definition: _Schema) -> Field:
        schema = definition.get("schema", {})
        text = definition.get("description") or schema.get("description", "")
        return Field(
            definition["name"], self._kind(schema), text, definition.get("required", False)
        )

    def _resolve(self, schema: _Schema) -> _Schema:
        while "$ref" in schema:
            schema = self._schemas.get(schema["$ref"].rpartition("/")[2], {})
        return schema

    def _variants(self, schema: _Schema) -> Iterator[_Schema]:
        """Yield the schema, or its alternatives without null."""
        schema = self._resolve(schema)
        choices = schema.get("anyOf") or schema.get("oneOf")
        for choice in choices or (schema,):
            found = self._resolve(choice)
            if found.get("type") != "null":
                yield found

    def _fields(self, schema: _Schema, before: str = "") -> Iterator[Field]:
        """Yield the fields of an object, and of the objects in it."""
        for variant in self._variants(schema):
            if variant.get("type") == "array":
                yield from self._fields(variant.get("items", {}), f"{before}[]")
            required = variant.get("required", ())
            for name, field in variant.get("properties", {}).items():
                place = f"{before}.{name}" if before else name
                text = field.get("description", "")
                yield Field(place, self._kind(field), text, name in required)
                yield from self._fields(field, place)

    def _kind(self, schema: _Schema, *, many: bool = False) -> str:
        """Return the type in words."""
        words = [self._word(variant, many=many) for variant in self._variants(schema)]
        resolved = self._resolve(schema)
        nothing = any(c.get("type") == "null" for c in resolved.get("anyOf", ()))
        return " or ".join(dict.fromkeys([*words, "null"] if nothing else words))

    def _word(self, schema: _Schema, *, many: bool) -> str:
        if "enum" in schema or "const" in schema:
            return " | ".join(json.dumps(v) for v in schema.get("enum", [schema.get("const")]))
        if schema.get("type") == "array":
            items = self._kind(schema.get("items", {}), many=True)
            return f"{'lists' if many else 'list'} of {items}"
        word = _name(schema)
        return f"{word}s" if many and word not in _UNCOUNTED else word

    def _commands(
        self, path: str, method: str, definition: _Schema, bodies: _Schema
    ) -> Iterator[str]:
        """Yield an example command for each format of the body."""
        start = 'curl -H "Authorization: Bearer $TOKEN"'
        if method != "get" and not (method == "post" and bodies):
            start = f'curl -X {method.upper()} -H "Authorization: Bearer $TOKEN"'
        address = self._address(path, definition.get("parameters", ()))
        for sending in dict.fromkeys(self._sending(bodies)):
            yield " \\\n  ".join([start, *sending, address])

    def _address(self, path: str, parameters: Sequence[_Schema]) -> str:
        for parameter in parameters:
            if parameter.get("in") == "path":
                name = parameter["name"]
                value = self._example(parameter.get("schema", {}))
                shown = name.upper() if value == _TEXT else str(value)
                path = path.replace("{" + name + "}", shown)
        query = [p for p in parameters if p.get("in") == "query"]
        pairs = [f"{p['name']}={self._example(p.get('schema', {}))}" for p in query]
        address = self._origin + path + ("?" + "&".join(pairs) if pairs else "")
        return f'"{address}"' if pairs else address

    def _sending(self, bodies: _Schema) -> Iterator[tuple[str, ...]]:
        """Yield the options of a command for each format of the body."""
        for kind, media in bodies.items():
            schema = media.get("schema", {})
            if kind == "multipart/form-data":
                yield ('-F "files=@image.png"',)
            elif kind == "application/json" and next(self._variants(schema), {}):
                example = json.dumps(self._example(schema))
                yield ('-H "Content-Type: application/json"', f"-d '{example}'")
            else:
                yield ("--data-binary @file",)
        if not bodies:
            yield ()

    def _example(self, schema: _Schema, depth: int = 0) -> Any:
        resolved = self._resolve(schema)
        found = next(self._variants(schema), {})
        for given in (resolved, found):
            for name in ("examples", "enum"):
                if given.get(name):
                    return given[name][0]
            for name in ("example", "const", "default"):
                if given.get(name) is not None:
                    return given[name]
        return self._made_up(found, depth)

    def _made_up(self, schema: _Schema, depth: int) -> Any:
        if "properties" in schema and depth < _DEEPEST:
            fields = schema["properties"].items()
            return {name: self._example(field, depth + 1) for name, field in fields}
        if schema.get("type") == "array":
            count = min(max(1, schema.get("minItems", 1)), _LONGEST)
            return [self._example(schema.get("items", {}), depth + 1)] * count
        simple = {"integer": 1, "number": 0.5, "boolean": True, "string": _TEXT}
        return simple.get(schema.get("type", ""))


def _name(schema: _Schema) -> str:
    """Return the type of a single value in words."""
    if "properties" in schema:
        return "object"
    if schema.get("format") == "binary" or "contentMediaType" in schema:
        return "file"
    if schema.get("format") == "byte":
        return "base64 text"
    words = {"integer": "whole number", "string": "text", "boolean": "true or false"}
    kind = str(schema.get("type", "anything"))
    return words.get(kind, kind)
