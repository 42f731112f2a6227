"""The OpenAPI document is true: requests drawn from it get the responses that it describes.

`python -m tests.test_server_schema 2000` draws that many for each route and way.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, seed, settings

from policyeng.models import JsonObject
from policyeng.server.app import application
from policyeng.server.metrics import ServerMetrics
from policyeng.server.options import Route
from policyeng.server.routes import evaluation
from tests.servers import service_of, setup_of, state_of
from tests.test_server_tokens import line

with warnings.catch_warnings():  # those of the library itself
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis import GenerationMode
    from schemathesis.checks import load_all_checks

    load_all_checks()
    from schemathesis.specs.openapi.checks import ignored_auth

EXAMPLES = 25
TOKEN = {"Authorization": "Bearer one"}


def served(folder: Path) -> Any:
    """The application of a server with everything on, as the library sees it."""
    tokens = folder / "tokens"
    known = [line("all", "check,admit,metrics", "one"), line("watch", "metrics", "watching")]
    tokens.write_text("\n".join(known), encoding="utf-8")
    service = service_of(setup_of(folder), state_of(since=datetime.now(UTC)), tokens)
    service.metrics = ServerMetrics()
    return schemathesis.openapi.from_asgi("/openapi.json", application(service))


def operations(schema: Any) -> Iterator[Any]:
    """All operations."""
    yield from (found.ok() for found in schema.get_all_operations())


def tried(operation: Any, mode: GenerationMode, examples: int, headers: Mapping[str, str] = TOKEN) -> Counter[int]:
    """How many requests got which status; every response is validated against the document.

    Raises:
        AssertionError: one is not as the document states.
    """
    statuses = Counter[int]()

    @seed(8)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def exchange(case: Any) -> None:
        assume(not has_huge_numbers(case.body))
        response = case.call(headers=headers)
        assume(not (response.status_code == 422 and BEYOND.search(response.json()["detail"])))
        statuses[int(response.status_code)] += 1
        case.validate_response(response, headers=headers)

    exchange()
    return statuses


#: What a pattern cannot state: an id is of the type next to it, and means the same as a URL; a resource is not
#: flattened, and no member is there twice.
BEYOND = re.compile("the id (is|has)|`id` has the type|not an ARM resource|a flattened|.* are the same member")


def has_huge_numbers(value: object) -> bool:
    """Whether there is a number for which JSON Schema has no word: whole, beyond 64 bits, and fine as `1e300`."""
    if isinstance(value, dict):
        return any(map(has_huge_numbers, value.values()))
    if isinstance(value, list):
        return any(map(has_huge_numbers, value))
    return isinstance(value, int | float) and abs(value) >= 2**63


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Of one server."""
    return served(tmp_path_factory.mktemp("server"))


@pytest.mark.slow
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda mode: mode.value)
def test_the_document_states_the_requests_and_responses(schema: Any, mode: GenerationMode) -> None:
    """What it allows gets 200, and what it does not a refusal, each of the described form."""
    sent = Counter[str]()
    for operation in operations(schema):
        if operation.body or mode is GenerationMode.POSITIVE:
            statuses = tried(operation, mode, EXAMPLES if operation.body else 2)
            sent[operation.label] += statuses.total()
            assert (set(statuses) == {200}) == (mode is GenerationMode.POSITIVE), (operation.label, statuses)

    assert min(sent[path] for path in sent if path.startswith("POST")) >= EXAMPLES // 2
    assert len([path for path in sent if path.startswith("POST")]) == 4


@pytest.mark.slow
def test_every_example_is_accepted(schema: Any) -> None:
    """Each of the document, with 200."""
    document: JsonObject = schema.raw_schema
    found = 0
    for operation in operations(schema):
        body = document["paths"][operation.path][operation.method].get("requestBody", {"content": {}})
        for media_type, content in body["content"].items():
            for example in content.get("examples", {}).values():
                case = operation.Case(body=example["value"], media_type=media_type)
                response = case.call(headers=TOKEN)
                assert response.status_code == 200, response.text
                case.validate_response(response, headers=TOKEN)
                found += 1

    assert found == 7


@pytest.mark.parametrize(
    ("authorization", "status"), [("", 401), ("Bearer another", 401), ("Basic b25l", 401), ("Bearer watching", 403)]
)
def test_no_one_gets_past_the_tokens(schema: Any, authorization: str, status: int) -> None:
    """Every route that is not for probes refuses whatever is sent, in the form that the document describes."""
    headers = {"Authorization": authorization} if authorization else {}
    guarded = 0
    for operation in operations(schema):
        is_guarded = "401" in schema.raw_schema["paths"][operation.path][operation.method]["responses"]
        statuses = tried_alone(operation, headers)
        may = not is_guarded or (status == 403 and operation.path == "/metrics")
        assert set(statuses) == {200 if may else status}, operation.label
        guarded += is_guarded

    assert guarded == 5


def tried_alone(operation: Any, headers: Mapping[str, str]) -> Counter[int]:
    """As `tried`, without the library's own tries to get in."""
    document: JsonObject = operation.schema.raw_schema
    statuses = Counter[int]()
    body = document["paths"][operation.path][operation.method].get("requestBody", {"content": {}})
    examples = [
        (media_type, example["value"])
        for media_type, content in body["content"].items()
        for example in content.get("examples", {}).values()
    ]
    for media_type, value in examples or [(None, None)]:
        case = operation.Case(body=value, media_type=media_type) if media_type else operation.Case()
        response = case.call(headers=dict(headers))
        statuses[int(response.status_code)] += 1
        case.validate_response(response, headers=dict(headers), excluded_checks=[ignored_auth])
    return statuses


@pytest.mark.slow
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda mode: mode.value)
def test_the_document_of_an_open_server_is_true_too(tmp_path: Path, mode: GenerationMode) -> None:
    """Of one without tokens and without a state, to which a change brings it."""
    schema = schemathesis.openapi.from_asgi("/openapi.json", application(service_of(setup_of(tmp_path))))
    for operation in operations(schema):
        # No schema describes a state: drawn ones are refused. Azure's form and reviews have nowhere to bring one.
        if operation.path == "/v1/check" or (operation.path == "/v1/admit" and mode is GenerationMode.NEGATIVE):
            statuses = tried(operation, mode, EXAMPLES, {})
            assert (set(statuses) == {200}) == (mode is GenerationMode.POSITIVE), (operation.label, statuses)
            assert statuses.total() >= EXAMPLES // 2


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda body: body.replace(b'"allowed":', b'"allow":'), "allowed"),
        (lambda body: body.replace(b'"exitCode":', b'"exitCode":"x","was":'), "exitCode"),
        (lambda _: b"[]", "object"),
    ],
)
def test_a_response_that_is_not_as_described_is_found(
    schema: Any, monkeypatch: pytest.MonkeyPatch, broken: Callable[[bytes], bytes], message: str
) -> None:
    """A member that is called otherwise, of another type, or none at all."""
    rendered = evaluation.rendered
    monkeypatch.setattr(evaluation, "rendered", lambda *given: broken(rendered(*given)))
    (operation,) = (each for each in operations(schema) if each.path == "/v1/admit")
    with pytest.raises(BaseException, match=message):
        tried(operation, GenerationMode.POSITIVE, 5)


def test_a_server_without_tokens_and_state_documents_it(tmp_path: Path) -> None:
    """Nothing of tokens, and a change brings its state."""
    document = application(service_of(setup_of(tmp_path))).openapi()

    assert "securitySchemes" not in document["components"]
    assert "401" not in document["paths"]["/v1/check"]["post"]["responses"]
    assert document["components"]["schemas"]["AdmitRequest"]["required"] == ["change", "state"]
    assert set(document["paths"]) == {
        "/v1/check",
        "/v1/admit",
        "/v1/check-policy-restrictions",
        "/v1/admission-review",
        "/healthz",
        "/readyz",
    }


@pytest.mark.parametrize("route", Route)
def test_the_document_lists_only_the_enabled_routes(tmp_path: Path, route: Route) -> None:
    """One path that evaluates, and the schemas that it refers to, directly or not; no unused ones."""
    document = application(service_of(setup_of(tmp_path), only=(route,))).openapi()
    named = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(document)))

    assert set(document["paths"]) == {f"/v1/{route}", "/healthz", "/readyz"}
    assert set(document["components"]["schemas"]) == named


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for each in operations(served(Path(folder))):
            for way in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE) if each.body else (GenerationMode.POSITIVE,):
                print(each.label, way.value, dict(tried(each, way, int(sys.argv[1]))))  # noqa: T201  # a script
