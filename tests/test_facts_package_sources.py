"""Where the packages of a conda file come from."""

from __future__ import annotations

import pytest

from policyeng.facts.package_sources import PackageSources, is_below, is_listed, normalized_source, parse_conda

PIP = "dependencies:\n- python=3.12\n- pip:\n"
INDEX = "https://pkgs.example/simple"


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("name: empty", PackageSources()),
        ("channels: [conda-forge, nodefaults]", PackageSources(("conda-forge",))),
        ("dependencies: [acme::numpy, python=3.12]", PackageSources(("acme",))),
        (f"{PIP}  - numpy # from the default", PackageSources(needs_default=True)),
        (f"{PIP}  - --no-index\n  - numpy", PackageSources()),
        (f"{PIP}  - -i {INDEX}\n  - numpy", PackageSources((INDEX,))),
        (f"{PIP}  - --index-url={INDEX}\n  - numpy", PackageSources((INDEX,))),
        (f"{PIP}  - --extra-index-url '{INDEX}'\n  - numpy", PackageSources((INDEX,), needs_default=True)),
        (f"{PIP}  - -f {INDEX}", PackageSources((INDEX,))),
        (f"{PIP}  - acme @ {INDEX}/acme.whl", PackageSources(addresses=(f"{INDEX}/acme.whl",))),
        (f"{PIP}  - acme@{INDEX}/acme.whl", PackageSources(addresses=(f"{INDEX}/acme.whl",))),
        (f"{PIP}  - -e git+{INDEX}/acme.git", PackageSources(addresses=(f"git+{INDEX}/acme.git",))),
        (f"{PIP}  - '# {INDEX}'", PackageSources()),
    ],
)
def test_sources(text: str, sources: PackageSources) -> None:
    """Channels of conda, and options and addresses of pip."""
    assert parse_conda(text) == sources


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "text",
        "- a list",
        "channels: conda-forge",
        "channels: [1]",
        "dependencies: numpy",
        "dependencies: [1]",
        "dependencies: [{pip: numpy}]",
        "dependencies: [{pip: [1]}]",
        "dependencies: [{conda: [numpy]}]",
        "dependencies: [{pip: [-r requirements.txt]}]",
        "dependencies: [{pip: [--index-url]}]",
        "a: &a [*a]",
        "channels: !tag [a]",
    ],
)
def test_what_is_unknown_is_a_doubt(text: str) -> None:
    """Nothing passes silently."""
    assert parse_conda(text).doubts


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (INDEX, f"{INDEX}/"),
        (INDEX, "HTTPS://PKGS.example/simple"),
        (INDEX, "https://user:word@pkgs.example/simple"),
        ("conda-forge", "https://conda.anaconda.org/Conda-Forge/"),
    ],
)
def test_two_spellings_of_one_source(one: str, other: str) -> None:
    """Case of the host, credentials and a slash at the end make no difference."""
    assert normalized_source(one) == normalized_source(other)
    assert is_listed(one, [other])


def test_other_sources_are_not_listed() -> None:
    """The path and the scheme count."""
    for other in ("http://pkgs.example/simple", "https://pkgs.example/Simple", f"{INDEX}/team", "pkgs.example/simple"):
        assert not is_listed(other, [INDEX])


def test_addresses_below_an_index() -> None:
    """Whole segments decide."""
    assert is_below(f"git+{INDEX}/acme.git", [INDEX])
    assert not is_below("https://pkgs.example/simple2/acme.whl", [INDEX])
