"""Routes whose functions take the request and give the response."""

from __future__ import annotations

from collections.abc import Callable, Coroutine

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response


class DirectRoute(APIRoute):
    """One that is described as every other, and called without FastAPI looking for what its function may want.

    Source: FastAPI's documentation, "Custom Request and APIRoute class".
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[object, object, Response]]:
        """Return the function itself."""
        function: Callable[[Request], Coroutine[object, object, Response]] = self.endpoint
        return function
