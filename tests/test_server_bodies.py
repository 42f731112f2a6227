"""Bodies are taken within limits while they arrive."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from policyeng.server.app import application
from policyeng.server.request_body import MAX_YAML_BYTES
from policyeng.server.service import Service
from tests.bundles import workspace
from tests.servers import JSON, post, send_to, service_of, setup_of, with_client

LONGEST = 1000


@pytest.fixture
def service(tmp_path: Path) -> Service:
    """A server that takes little."""
    return service_of(setup_of(tmp_path), max_body_bytes=LONGEST, max_pending_bytes=1500)


async def pieces(size: int, *, pause: float = 0) -> AsyncIterator[bytes]:
    """So many bytes of JSON in small pieces, as a chunked body has them."""
    yield b'"'
    for _ in range(size - 2):
        yield b"a"
        await asyncio.sleep(pause)
    yield b'"'


def streamed(service: Service, content: AsyncIterator[bytes], **headers: str) -> httpx.Response:
    """The response to a body without a stated length."""

    async def use(client: httpx.AsyncClient) -> httpx.Response:
        return await client.post("/v1/check", content=content, headers={**JSON, **headers})

    return with_client(application(service), use)


def test_a_body_as_long_as_allowed_is_taken(service: Service) -> None:
    """Whether its length was announced or not; one byte more is refused."""
    assert send_to(service, "/v1/check", b'"' + b"a" * (LONGEST - 2) + b'"').status_code == 200
    assert streamed(service, pieces(LONGEST)).status_code == 200
    assert send_to(service, "/v1/check", b'"' + b"a" * (LONGEST - 1) + b'"').status_code == 413
    refused = streamed(service, pieces(LONGEST + 1))
    assert refused.status_code == 413
    assert "--max-body-bytes" in refused.json()["remedy"]
    assert service.bodies.buffered == 0


def test_a_length_is_believed_before_anything_is_read(service: Service) -> None:
    """A length that is exceeded, or is no number, is refused."""
    assert send_to(service, "/v1/check", b"[]", content_length=str(LONGEST + 1)).status_code == 413
    for length in ("3", "1", "x", "-1"):
        assert send_to(service, "/v1/check", b"[]", content_length=length).status_code == 400, length
    assert service.bodies.buffered == 0


def test_a_body_that_does_not_arrive_in_time_is_refused(tmp_path: Path) -> None:
    """A slow client occupies nothing longer than a request may take."""
    service = service_of(setup_of(tmp_path), max_body_bytes=LONGEST, deadline=0.3)

    response = streamed(service, pieces(LONGEST, pause=0.01))

    assert response.status_code == 408
    assert service.bodies.buffered == 0


def test_bodies_together_are_bounded(service: Service) -> None:
    """The one that is too much is refused, the other gets its response."""

    async def use(client: httpx.AsyncClient) -> list[int]:
        sent = [client.post("/v1/check", content=pieces(900), headers=JSON) for _ in range(2)]
        return sorted(response.status_code for response in await asyncio.gather(*sent))

    assert with_client(application(service), use) == [200, 503]
    assert service.bodies.buffered == 0


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "application/json"}, 200),
        ({"content-type": "Application/JSON; charset=UTF-8"}, 200),
        ({"content-type": 'application/json;charset="utf-8"'}, 200),
        ({"content-type": "application/json; charset=latin-1"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-type": "application/json, text/html"}, 415),
        ({"content-type": ""}, 415),
        ({"content-encoding": "identity"}, 200),
        ({"content-encoding": "gzip"}, 415),
    ],
)
def test_a_body_states_its_type(tmp_path: Path, headers: dict[str, str], status: int) -> None:
    """In UTF-8 and not compressed."""
    content = b'{"id": "/x", "type": "a.b/c"}'
    compressed = headers.get("content-encoding") == "gzip"
    request = post("/v1/check", gzip.compress(content) if compressed else content)
    request.headers.update(headers)

    async def use(client: httpx.AsyncClient) -> httpx.Response:
        return await client.send(request)

    response = with_client(application(service_of(setup_of(tmp_path))), use)
    assert response.status_code == status
    if compressed:
        assert response.headers["accept-encoding"] == "identity"
    elif status == 415:
        assert "application/json" in response.headers["accept"]


def test_yaml_is_for_documents_only(tmp_path: Path) -> None:
    """A change is JSON."""
    service = service_of(setup_of(tmp_path))
    statuses = [
        send_to(service, path, b"a: 1", content_type="application/yaml").status_code
        for path in ("/v1/check", "/v1/admit")
    ]

    assert statuses == [200, 415]
    assert send_to(service, "/v1/check", workspace("w")).status_code == 200


def test_a_body_in_yaml_is_shorter(tmp_path: Path) -> None:
    """1 MiB of it takes as much memory as a snapshot of 16 MiB in JSON."""
    service = service_of(setup_of(tmp_path))
    content = b"snapshotVersion: 1\n# " + b"x" * (MAX_YAML_BYTES - 22) + b"\n"
    taken, refused = (
        send_to(service, "/v1/check", body, content_type="application/yaml; charset=utf-8")
        for body in (content, content + b"\n")
    )

    assert len(content) == MAX_YAML_BYTES
    assert taken.status_code == 200
    assert (refused.status_code, refused.json()["remedy"]) == (413, "send it as JSON, which may be longer")
