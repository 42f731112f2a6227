"""Where container images come from."""

from __future__ import annotations

import pytest

from policyeng.facts.images import image_source, is_from

DIGEST = "@sha256:0123456789abcdef"


@pytest.mark.parametrize(
    ("image", "source"),
    [
        ("python", "docker.io/library/python"),
        ("python:3.12", "docker.io/library/python"),
        ("acme/base", "docker.io/acme/base"),
        ("index.docker.io/acme/base:1", "docker.io/acme/base"),
        ("ACME.azurecr.io/Team/Base:1", "acme.azurecr.io/Team/Base"),
        (f"acme.azurecr.io/base:1{DIGEST}", "acme.azurecr.io/base"),
        (f"acme.azurecr.io/base{DIGEST}", "acme.azurecr.io/base"),
        ("localhost/base", "localhost/base"),
        ("LOCALHOST:5000/base:1", "localhost:5000/base"),
        ("registry:5000/base", "registry:5000/base"),
        (" acme.azurecr.io/base ", "acme.azurecr.io/base"),
    ],
)
def test_source(image: str, source: str) -> None:
    """The host is in lower case, and that of Docker Hub if none is stated; tag and digest are cut."""
    assert image_source(image) == source


@pytest.mark.parametrize(
    ("image", "allowed", "is_allowed"),
    [
        ("acme.azurecr.io/base", "acme.azurecr.io", True),
        ("acme.azurecr.io/base", "ACME.azurecr.io/", True),
        ("acme.azurecr.io/base", "https://acme.azurecr.io/base", True),
        ("acme.azurecr.io/base:1", "acme.azurecr.io/base:2", True),
        ("acme.azurecr.io/base2", "acme.azurecr.io/base", False),
        ("acme.azurecr.io/base", "acme.azurecr.io/base/images", False),
        ("acme.azurecr.io.example/base", "acme.azurecr.io", False),
        ("localhost:5000/base", "localhost:5000", True),
        ("localhost:5001/base", "localhost:5000", False),
        ("python", "docker.io", True),
        ("python", "python", True),
        ("acme/python", "python", False),
        ("acme/python", "docker.io/acme", True),
    ],
)
def test_allowed_sources(image: str, allowed: str, is_allowed: bool) -> None:
    """Whole segments decide."""
    assert is_from(image, [allowed]) is is_allowed
    assert is_from(image, ["other.example", allowed]) is is_allowed
    assert not is_from(image, [])
