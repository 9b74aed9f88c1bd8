"""The OpenAPI document: complete, true, and its examples work."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import jsonschema_rs
import pytest
from fastapi import FastAPI

from api.limits import Limits
from api.metrics import Metrics
from api.models import Models
from api.service import Service
from api.ui.reference import router as reference_routes
from api.ui.status import router as status_routes
from tests.api_fakes import SPEECH, app_of
from tests.pages import PageEngine, murmur, wav

Json = dict[str, Any]


def with_the_pages_routes(app: FastAPI, engine: PageEngine) -> FastAPI:
    """As ``ui=True`` has it, but without Gradio, which takes long to load and is not described."""
    service = Service(engine, Metrics(), Models(engine.description.id, created=0))
    app.include_router(status_routes(service))
    app.include_router(reference_routes(service))
    return app


ENGINE = PageEngine()
APP = with_the_pages_routes(app_of(ENGINE), ENGINE)
DOCUMENT: Json = APP.openapi()
OPERATIONS = [
    (method, path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]
NAMES = [f"{method} {path}" for method, path, _ in OPERATIONS]
each_operation = pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS, ids=NAMES)


def resolved(schema: Json) -> Json:
    """What a reference leads to."""
    if "$ref" not in schema:
        return schema
    found: Any = DOCUMENT
    for name in schema["$ref"].removeprefix("#/").split("/"):
        found = found[name]
    return found


def fields(schema: Json, where: str) -> Iterator[tuple[str, Json]]:
    """All fields of a schema, of what it refers to as well, with their places."""
    schema = resolved(schema)
    for name, field in schema.get("properties", {}).items():
        yield f"{where}.{name}", field
        yield from fields(field, f"{where}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from fields(schema[key], f"{where}[]")
    for key in ("anyOf", "oneOf", "allOf"):
        for part in schema.get(key, []):
            yield from fields(part, where)


def example_of(schema: Json, where: str) -> Any:
    """Its own example, or one made of its parts'. Raises KeyError for a field without."""
    own = schema.get("examples") or resolved(schema).get("examples")
    if own:
        return own[0]
    schema = resolved(schema)
    if "properties" in schema:
        return {name: example_of(f, f"{where}.{name}") for name, f in schema["properties"].items()}
    if schema.get("type") == "array":
        return [example_of(schema["items"], f"{where}[]")]
    raise KeyError(f"{where} has no example")


def check(schema: Json, value: object) -> None:
    """Raises what does not fit."""
    whole = {"components": DOCUMENT["components"], **schema}
    jsonschema_rs.Draft202012Validator(whole).validate(value)


def bodies(operation: Json) -> dict[str, Json]:
    content: dict[str, Json] = operation.get("requestBody", {}).get("content", {})
    return content


@each_operation
def test_everything_is_described(method: str, path: str, operation: Json) -> None:
    assert operation["summary"] and operation["description"] and operation["tags"]
    for parameter in operation.get("parameters", []):
        assert parameter["description"], parameter
        assert parameter["schema"].get("examples") or "examples" in parameter, parameter
        assert not parameter["required"] or parameter["in"] == "path"
    contents = [(f"{name} request", entry) for name, entry in bodies(operation).items()]
    for status, response in operation["responses"].items():
        assert response["description"], status
        contents += [(f"{status} {name}", e) for name, e in response.get("content", {}).items()]
        for name, header in response.get("headers", {}).items():
            assert header["description"] and header["schema"], name
    assert any(name.startswith("200") for name, _ in contents)
    for where, entry in contents:
        assert entry["schema"], where
        for place, field in fields(entry["schema"], where):
            assert field.get("description"), place


@each_operation
def test_examples_are_there_and_fit(method: str, path: str, operation: Json) -> None:
    for status, response in operation["responses"].items():
        for kind, entry in response.get("content", {}).items():
            schema = entry["schema"]
            if kind == "application/json":
                example = entry.get("example") or example_of(schema, f"{path} {status}")
                check(schema, example)
            elif kind.startswith("text/"):
                assert entry["example"]
    for kind, entry in bodies(operation).items():
        if kind == "application/json":
            for example in resolved(entry["schema"])["examples"]:
                check(entry["schema"], example)


@each_operation
def test_every_error_is_documented(method: str, path: str, operation: Json) -> None:
    responses = operation["responses"]
    expected = {"200", "default"}
    if path.startswith("/v1") or path == "/metrics":
        expected.add("401")
    if method == "post":
        expected |= {"400", "408", "413", "415", "429"}
    if "{" in path:
        expected.add("404")
    assert expected <= set(responses)
    for status in set(responses) - {"200"}:
        (entry,) = responses[status]["content"].values()
        assert entry["schema"] == {"$ref": "#/components/schemas/Error"}
        assert entry["example"]["error"]["message"]
        assert ("Retry-After" in responses[status].get("headers", {})) == (status in ("429", "503"))


def test_every_tag_is_described() -> None:
    tags = {tag["name"]: tag["description"] for tag in DOCUMENT["tags"]}
    used = {tag for _, _, operation in OPERATIONS for tag in operation["tags"]}
    assert used == set(tags) and all(tags.values())


def test_nothing_of_the_framework_shines_through() -> None:
    assert not {"HTTPValidationError", "ValidationError"} & set(DOCUMENT["components"]["schemas"])
    assert all("422" not in o["responses"] or "trying again" in str(o) for *_, o in OPERATIONS)


SMALL = Limits(body_bytes=9, batch_bytes=9, reference_bytes=9)
SMALL_APP = app_of(PageEngine(ready=False), SMALL)
KEYED = Limits(api_keys=tuple(NAMES), requests_per_minute=1)
KEYED_APP = app_of(PageEngine(ready=False), KEYED)


def client_of(app: FastAPI) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(APP) as client:
        yield client


def address(path: str, operation: Json) -> str:
    """With the parameters' examples."""
    for parameter in operation.get("parameters", []):
        example = parameter["schema"]["examples"][0]
        path = path.replace(f"{{{parameter['name']}}}", str(example))
    return path


def wishes(path: str, operation: Json) -> Iterator[Json]:
    """What httpx is to send, for each example."""
    for kind, entry in bodies(operation).items():
        schema = resolved(entry["schema"])
        if kind == "application/json":
            yield from ({"json": example} for example in schema["examples"])
        else:
            data = {n: f["examples"][0] for n, f in schema["properties"].items() if "examples" in f}
            yield {"data": data, "files": {"audio_sample": ("x.wav", wav(murmur(2.0)))}}
    if not bodies(operation):
        yield {}


@each_operation
async def test_examples_work(
    client: httpx.AsyncClient, method: str, path: str, operation: Json
) -> None:
    for wish in wishes(path, operation):
        answer = await client.request(method, address(path, operation), **wish)
        kind = answer.headers["content-type"]
        response = operation["responses"][str(answer.status_code)]
        assert (
            answer.status_code == 200 or "{voice_id}" in path
        )  # the fake has one voice without a preview
        known = {name.partition(";")[0]: entry for name, entry in response["content"].items()}
        entry = known[kind.partition(";")[0]]
        if "json" in kind:
            check(entry["schema"], answer.json())


@each_operation
async def test_errors_are_as_documented(method: str, path: str, operation: Json) -> None:
    """Everything that can go wrong with any operation, tried with each."""
    if path not in SMALL_APP.openapi()["paths"]:
        return  # the page's; they pass through the same doors
    where, wish = address(path, operation), next(wishes(path, operation))
    async with client_of(KEYED_APP) as client:
        answers = [await client.request(method, where, **wish)]
        client.headers["Authorization"] = f"Bearer {method} {path}"
        answers += [await client.request(method, where, **wish) for _ in range(2)]
    async with client_of(SMALL_APP) as client:
        answers.append(await client.request(method, where, **wish))
        headers = {"Content-Encoding": "gzip"}
        answers.append(await client.request(method, where, headers=headers, content=b"{"))
        answers.append(await client.request(method, f"{where}/nowhere"))
        answers.append(await client.request("PATCH", where))
        if method == "post":
            for kind in ("application/json", "multipart/form-data; boundary=x", "text/plain"):
                headers = {"Content-Type": kind}
                answers.append(await client.request(method, where, headers=headers, content=b"{"))
    documented = operation["responses"]
    for answer in answers:
        if answer.status_code != 200:
            check({"$ref": "#/components/schemas/Error"}, answer.json())
            of_another_route = answer.status_code in (404, 405, 415)
            assert str(answer.status_code) in documented or of_another_route, answer.text


async def test_an_error_beside_the_routes_has_the_same_shape(client: httpx.AsyncClient) -> None:
    for method, path in (("GET", "/nowhere"), ("PUT", "/health"), ("POST", "/v1/nowhere")):
        answer = await client.request(method, path, json=SPEECH)
        assert answer.status_code in (404, 405)
        check({"$ref": "#/components/schemas/Error"}, answer.json())
