"""Collecting live Azure: what is read of a scope, and that it is judged as a snapshot from files is."""

from __future__ import annotations

import json
import os
from pathlib import Path
from unittest.mock import patch

from policyeng.models import JsonObject
from tests.azure_fake import SUBSCRIPTION, Azure, served
from tests.command import Ran, policyeng

SAMPLES = Path(__file__).parents[1] / "samples" / "workspaces"


def sample(name: str) -> JsonObject:
    """A snapshot of the samples."""
    document: JsonObject = json.loads((SAMPLES / name).read_text(encoding="utf-8"))
    return document


def asked(azure: Azure, *arguments: str) -> Ran:
    """What the command says when it asks an Azure."""
    with served(azure) as environ, patch.dict(os.environ, environ):
        return policyeng("snapshot", "collect", "--subscription", SUBSCRIPTION, *arguments)


def collected(azure: Azure, *arguments: str) -> JsonObject:
    """The snapshot that the command makes of an Azure."""
    ran = asked(azure, *arguments)
    assert ran.returncode == 0, ran.stderr
    document: JsonObject = json.loads(ran.stdout)
    return document


def test_reads_every_resource_of_a_subscription() -> None:
    """Lists, the lists in them, and what is only named."""
    held = sample("compliant.json")["resources"]
    document = collected(Azure().hold(*held))
    assert sorted(one["id"] for one in document["resources"]) == sorted(one["id"] for one in held)
    assert "incomplete" not in document
