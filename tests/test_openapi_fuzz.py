"""Inputs made of the OpenAPI document's schemas, right and wrong: every answer is documented."""

from __future__ import annotations

import json
import math
from typing import Any
from urllib.parse import quote

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.api_fakes import FakeEngine, app_of
from tests.asgi import Headers, ask

Json = dict[str, Any]
ENGINE = FakeEngine()
APP = app_of(ENGINE, max_voices=0)
DOCUMENT: Json = APP.openapi()
OPERATIONS = [
    (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


def resolved(schema: Json) -> Json:
    name = schema.get("$ref", "").rpartition("/")[2]
    return DOCUMENT["components"]["schemas"][name] if name else schema


def near(schema: Json) -> st.SearchStrategy[Any]:
    """Values of a schema, and now and then ones that just miss it or are something else."""
    return st.one_of(fitting(schema), fitting(schema), missing(schema), ANYTHING)


def fitting(schema: Json) -> st.SearchStrategy[Any]:
    """Values that the schema allows."""
    schema = resolved(schema)
    if "anyOf" in schema:
        return st.one_of([fitting(part) for part in schema["anyOf"]])
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    match schema.get("type"):
        case "object":
            return objects(schema, fitting)
        case "array":
            return st.lists(
                fitting(schema["items"]), min_size=schema.get("minItems", 0), max_size=3
            )
        case "string":
            longest = min(schema.get("maxLength", 30), 30)
            return st.text(min_size=schema.get("minLength", 0), max_size=longest)
        case "integer":
            low, high = schema.get("minimum", -9), schema.get("maximum", 2**40)
            return st.integers(math.ceil(low), math.floor(high))
        case "number":
            low, high = schema.get("minimum", 1e-9), schema.get("maximum", 1e9)
            return st.floats(low, high, exclude_min="exclusiveMinimum" in schema)
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
    return ANYTHING


def missing(schema: Json) -> st.SearchStrategy[Any]:
    """Values next to what the schema allows."""
    schema = resolved(schema)
    if "anyOf" in schema:
        return st.one_of([missing(part) for part in schema["anyOf"]])
    match schema.get("type"):
        case "object":
            return objects(schema, near)
        case "array":
            most = schema.get("maxItems", 5)
            return st.sampled_from([[], [{}] * (most + 1), [[]], {}])
        case "string":
            most = schema.get("maxLength", 30)
            return st.sampled_from(["", " ", "x" * (most + 1), "\0", "\ud800", "PCM", "ﬀ"])
        case "integer" | "number":
            edges = [
                schema[key] for key in ("minimum", "maximum", "exclusiveMaximum") if key in schema
            ]
            around = [edge + step for edge in edges for step in (-1, -1e-9, 1e-9, 1)]
            return st.sampled_from([*around, 1.5, -1, 10**400, math.nan, math.inf, "1", True])
    return ANYTHING


def objects(schema: Json, of: Any) -> st.SearchStrategy[Json]:
    fields = {name: of(field) for name, field in schema.get("properties", {}).items()}
    required = set(schema.get("required", ())) if of is fitting else set()
    needed = {name: entry for name, entry in fields.items() if name in required}
    optional = {name: entry for name, entry in fields.items() if name not in required}
    return st.fixed_dictionaries(needed, optional=optional)


def form(fields: Json) -> bytes:
    parts = b""
    for name, value in fields.items():
        file = b'; filename="a"' if name == "audio_sample" else b""
        head = b'--x\r\nContent-Disposition: form-data; name="%b"%b\r\n\r\n'
        data = str(value).encode("utf-8", "surrogatepass")
        parts += head % (name.encode(), file) + data + b"\r\n"
    return parts + b"--x--\r\n"


@st.composite
def requests(draw: st.DrawFn, path: str, operation: Json) -> tuple[str, bytes, Headers]:
    """A target, a body and headers."""
    query = []
    for parameter in operation.get("parameters", []):
        value = str(draw(near(parameter["schema"])))
        text = quote(value.encode("utf-8", "surrogatepass"), safe="")
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", text or "x")
        else:
            query.append(f"{parameter['name']}={text}")
    target = f"{path}?{'&'.join(query)}" if query else path
    content = operation.get("requestBody", {}).get("content", {})
    for kind, entry in content.items():
        value = draw(near(entry["schema"]))
        if kind == "application/json":
            return target, json.dumps(value).encode(), [(b"content-type", kind.encode())]
        fields = value if isinstance(value, dict) else {"name": value}
        fields = {name: entry for name, entry in fields.items() if name.isidentifier()}
        return target, form(fields), [(b"content-type", b"multipart/form-data; boundary=x")]
    return target, b"", []


def fits(schema: Json, value: object) -> bool:
    whole = {"components": DOCUMENT["components"], **schema}
    return bool(jsonschema_rs.Draft202012Validator(whole).is_valid(value))


@pytest.mark.parametrize(
    ("method", "path", "operation"), OPERATIONS, ids=[f"{m} {p}" for m, p, _ in OPERATIONS]
)
@given(data=st.data())
@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
async def test_every_answer_is_documented(
    method: str, path: str, operation: Json, data: st.DataObject
) -> None:
    target, body, headers = data.draw(requests(path, operation))
    answer = await ask(APP, method, target, body, headers)
    documented = operation["responses"].get(str(answer.status))
    assert documented, (answer, target, body)
    kind = dict(answer.headers)[b"content-type"].decode()
    entry = {name.partition(";")[0]: e for name, e in documented["content"].items()}
    schema = entry[kind.partition(";")[0]]["schema"]
    if kind == "application/json":
        assert fits(schema, json.loads(answer.body)), (answer, target, body)
    assert ENGINE.open == 0
