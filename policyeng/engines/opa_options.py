"""The options for OPA, in a module that is fast to import."""

from __future__ import annotations

from pathlib import Path

from policyeng.frozen import field, frozen


@frozen
class OpaOptions:
    """The OPA server that evaluates, and how to reach it.

    Attributes:
        url: an OPA server, such as `https://opa.example.com:8181`; empty for a private server of this process.
        token: the bearer token for `url`; it is never printed.
        ca_file: PEM file of the authorities to trust for the server's certificate, instead of the public ones.
        client_cert: PEM file of our certificate and its key, for a server that requires one.
        timeout: seconds to connect, at most 10, and between bytes of a response.
        binary: the `opa` program for a private server; by default `opa` from the `PATH`, or `.tools/bin` of a checkout.
        bundle: the name under which the server at `url` has loaded the bundle itself; empty to search for it.
        push: whether to push the bundle to the server at `url`; None to push if the server has not loaded a policyeng
            bundle itself.
    """

    url: str = ""
    token: str = field(default="", repr=False)
    ca_file: Path | None = None
    client_cert: Path | None = None
    timeout: float = 300.0
    binary: Path | None = None
    bundle: str = ""
    push: bool | None = None
