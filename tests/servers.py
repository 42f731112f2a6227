"""Servers in this process, for tests of their responses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import httpx
from fastapi import FastAPI

from policyeng.bundle import load_bundle
from policyeng.configuration import Settings
from policyeng.context import EvaluationSetup
from policyeng.models import JsonObject
from policyeng.server.app import application
from policyeng.server.authentication import Tokens, read_tokens
from policyeng.server.file_watcher import Watched, fingerprint
from policyeng.server.options import ServerOptions
from policyeng.server.service import Service, SnapshotState
from tests.bundles import deny_when, rego, snapshot, workspace, write

_T = TypeVar("_T")
JSON = {"content-type": "application/json"}
#: Fails a workspace whose `x` is above 1.
POLICY = rego("limit", deny_when("input.resource.properties.x > 1"))


def setup_of(folder: Path, **settings: Any) -> EvaluationSetup:
    """A setup with a bundle of one policy."""
    return EvaluationSetup(
        load_bundle(write(folder / "bundle", {"area/limit.rego": POLICY})), (), {}, Settings(**settings)
    )


def state_of(*resources: JsonObject, since: datetime) -> SnapshotState:
    """A state of resources."""
    return SnapshotState(snapshot(*(resources or (workspace("there"),))), since)


def service_of(
    in_force: EvaluationSetup,
    state: SnapshotState | None = None,
    tokens: Path | None = None,
    **options: Any,
) -> Service:
    """A service that reads nothing again."""
    known: Watched[Tokens] | None = None
    if tokens is not None:
        known = Watched("tokens", lambda: read_tokens(tokens), (tokens,))
    watched = None if state is None else Watched("state", lambda: state, ())
    server = replace(ServerOptions(), tokens=tokens, **options)
    return Service(server, Watched("policies", lambda: in_force, ()), watched, known)


def look(watched: Watched[object]) -> None:
    """Reload if the files changed since the last reading, as the watching thread does when they are stable."""
    if fingerprint(watched._files()) != watched.seen:
        watched.reload()


def send_all(app: FastAPI, *requests: httpx.Request) -> list[httpx.Response]:
    """The responses to requests, sent at the same time."""

    async def all_of_them(client: httpx.AsyncClient) -> list[httpx.Response]:
        return list(await asyncio.gather(*map(client.send, requests)))

    return with_client(app, all_of_them)


def with_client(app: FastAPI, use: Callable[[httpx.AsyncClient], Awaitable[_T]]) -> _T:
    """What comes of a client of an application."""

    async def used() -> _T:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://server") as client:
            return await use(client)

    return asyncio.run(used())


def post(path: str, content: object, **headers: str) -> httpx.Request:
    """A request with a JSON body; bytes are sent as they are."""
    given = {**JSON, **{name.replace("_", "-"): value for name, value in headers.items()}}
    if isinstance(content, bytes):
        return httpx.Request("POST", f"http://server{path}", content=content, headers=given)
    return httpx.Request("POST", f"http://server{path}", json=content, headers=given)


def send_to(service: Service, path: str, content: object, **headers: str) -> httpx.Response:
    """The response to one request."""
    return send_all(application(service), post(path, content, **headers))[0]


def get_from(service: Service, *paths: str, **headers: str) -> Sequence[httpx.Response]:
    """The responses to requests without a body."""
    return send_all(
        application(service), *(httpx.Request("GET", f"http://server{path}", headers=headers) for path in paths)
    )
