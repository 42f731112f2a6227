"""What a user says about the OPA that judges; importing it costs nothing."""

from __future__ import annotations

from pathlib import Path

from policyeng.frozen import field, frozen


@frozen
class OpaOptions:
    """Which OPA judges, and how it is reached.

    Attributes:
        url: an OPA server, such as `https://opa.example.com:8181`; empty for a private server of this process.
        token: the bearer token for `url`; it is never printed.
        ca_file: PEM file of the authorities that the server's certificate is held against, instead of the public ones.
        client_cert: PEM file of our certificate and its key, for a server that asks for one.
        timeout: seconds until a connection stands, at most 10, and between bytes of an answer.
        binary: the `opa` program for a private server; else `opa` of the PATH, or of `.tools/bin` of a checkout.
        bundle: the name under which the server at `url` has loaded our bundle itself; empty to look for it.
        push: whether to bring the bundle to the server at `url`; None to do so when it has loaded none of ours itself.
    """

    url: str = ""
    token: str = field(default="", repr=False)
    ca_file: Path | None = None
    client_cert: Path | None = None
    timeout: float = 300.0
    binary: Path | None = None
    bundle: str = ""
    push: bool | None = None
