"""What was asked of the API server and what it said, for people to read."""

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

    def say(self, text: str = "") -> None:
        """Write a line."""
        self.lines.append(_AGE.sub("N seconds old", _ADDRESS.sub("127.0.0.1:PORT", text)))

    def head(self, text: str) -> None:
        """Begin a step."""
        self.say()
        self.say(f"== {text}")

    def heard(self, asked: str, answer: httpx.Response) -> None:
        """Write what was asked and the answer: its status, its message and its warnings."""
        said: JsonObject = answer.json()
        reason = said.get("reason", answer.reason_phrase) if answer.is_error else answer.reason_phrase
        self.say(f"> {asked}")
        self.say(f"< {answer.status_code} {reason}")
        if answer.is_error:
            for line in str(said["message"]).splitlines():
                self.say(f"    {line}")
        for warning in answer.headers.get_list("warning"):
            self.say(f"    Warning: {warning.partition(' - ')[2].strip(chr(34))}")

    def annotated(self, annotations: Mapping[str, object]) -> None:
        """Write what the API server's audit log has of our decision; its id and digest, which are new, as such."""
        for key, value in sorted(annotations.items()):
            if key.startswith("azure.policyeng.io/"):
                new = key.endswith(("decision-id", "digest"))
                self.say(f"    audit: {key}: {'...' if new else value}")
