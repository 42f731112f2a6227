"""The requests to the API server and its responses, for people to read."""

from __future__ import annotations

import re
from collections.abc import Mapping

import httpx

from policyeng.models import JsonObject

_ADDRESS = re.compile(r"127\.0\.0\.1:\d+")
_AGE = re.compile(r"\d+ seconds old")


class Transcript:
    """Lines, with nothing in them that differs between two runs."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, text: str = "") -> None:
        """Write a line."""
        self.lines.append(_AGE.sub("N seconds old", _ADDRESS.sub("127.0.0.1:PORT", text)))

    def head(self, text: str) -> None:
        """Begin a step."""
        self.write()
        self.write(f"== {text}")

    def record(self, request: str, response: httpx.Response) -> None:
        """Write a request and its response: the status, its message and its warnings."""
        body: JsonObject = response.json()
        reason = body.get("reason", response.reason_phrase) if response.is_error else response.reason_phrase
        self.write(f"> {request}")
        self.write(f"< {response.status_code} {reason}")
        if response.is_error:
            for line in str(body["message"]).splitlines():
                self.write(f"    {line}")
        for warning in response.headers.get_list("warning"):
            self.write(f"    Warning: {warning.partition(' - ')[2].strip(chr(34))}")

    def annotated(self, annotations: Mapping[str, object]) -> None:
        """Write what the API server's audit log has of our decision; its id and digest, which are new, as such."""
        for key, value in sorted(annotations.items()):
            if key.startswith("azure.policyeng.io/"):
                new = key.endswith(("decision-id", "digest"))
                self.write(f"    audit: {key}: {'...' if new else value}")
