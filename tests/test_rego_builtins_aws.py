"""The builtin that signs requests to AWS gives what OPA gives."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from policyeng.rego.builtins import load_function
from policyeng.rego.builtins.registry import OperandError
from tests.rego_oracle import Call, find_differences, seeded

_URLS = (
    *("https://example.com/a b/c?x=1&y=2", "http://h:80/", "http://h", "https://u:p@h/é/%41?", "https://[::1]:8/x"),
    *("mailto:x", "//h/a", "/p", "*", "http://a%zz/", "http://ü.example/%C3%BC/%2f?q=ü#f", "http://x:a/"),
    *("http://h/a?", "http://h/'()*!", "http://[::1%25eth0]/", "http://h:1:2/", "ftp://h:1:2/", "", "a:b", "1:b", ":x"),
    *("http://h/\x01", "http://u@@h/", "http://h /", "http://[1.2.3.4]/", "http://h/%", "http://%41/", "http://h<>/x"),
    *("http://h/[x]", "HTTP://Ab/..", "http://h/%ff", "///a", "http://u:%zz@h/", "http://h/a;b,c@d:e$f&g=h+i"),
)
_HEADERS: tuple[Any, ...] = (
    *({"A": "b", "Foo": "x y"}, {"Authorization": "z", "é": "İ", "İ": "1"}, {"User-Agent": "q"}, 5, {}, {"n": 3}),
    *([], None, {"host": "over", "X-Amz-Date": "z"}),
)
_BODIES = ("x", {"b": 1, "a": "<é>"}, [1.5, None], {"s": [{"z": True}]}, None, {"b": 12345678901234567890})
_TIMES = (0, 1700000000123456789, -5, -1, 2**63, 2**63 - 1, -(2**63), "x", 1.5, None)


def _draw(random: Random) -> Call:
    config: dict[str, Any] = {"aws_service": "s3", "aws_access_key": "AK", "aws_secret_access_key": "secret"}
    config["aws_region"] = "us-east-1"
    request: dict[str, Any] = {"method": random.choice(("get", "POST")), "url": random.choice(_URLS)}
    for chance, document, name, values in (
        (0.2, config, "aws_service", ("ec2", "glacier", "é", 5, None)),
        (0.2, config, "aws_session_token", ("token", 5)),
        (0.2, config, "disable_payload_signing", (True, False, "x")),
        (0.4, request, "headers", _HEADERS),
        (0.4, request, "body", _BODIES),
        (0.2, request, "raw_body", ("raw é", 5)),
        (0.05, request, "unknown", (1,)),
        (0.05, request, "timeout", (1,)),
        (0.05, request, "method", (1, None)),
        (0.05, request, "url", (1, ["x"])),
    ):
        if random.random() < chance:
            document[name] = random.choice(values)
    for document in (config, request):
        if random.random() < 0.05:
            document.pop(random.choice(list(document)))
    arguments: list[Any] = [request, config, random.choice(_TIMES)]
    if random.random() < 0.05:
        arguments[random.randrange(3)] = random.choice((None, 1, "s", [], {1}))
    return ("providers.aws.sign_req", tuple(arguments))


def test_requests_are_signed_as_opa_does(opa: Path) -> None:
    """Good and bad requests, credentials and times."""
    random = seeded(1)
    assert find_differences(opa, [_draw(random) for _ in range(1500)]) == []


@pytest.mark.parametrize("time", [-1e9, 1.0])
def test_a_time_with_an_exponent_or_a_point_is_an_error(time: float) -> None:
    """OPA refuses a time by how it is written, which a number does not show."""
    config = dict.fromkeys(("aws_service", "aws_access_key", "aws_secret_access_key", "aws_region"), "x")
    with pytest.raises(OperandError, match="could not convert time_ns"):
        load_function("providers.aws.sign_req")({"method": "get", "url": "http://h"}, config, time)
