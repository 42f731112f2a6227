"""The builtin that signs requests to AWS."""

from __future__ import annotations

import hmac
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from policyeng.rego.builtins.go_text import UrlError, parse_url, to_bytes, to_value, write_json
from policyeng.rego.builtins.registry import (
    BuiltinError,
    OperandError,
    builtin,
    check_number,
    check_object,
    wrong_type,
)
from policyeng.rego.values import Value, to_text

_CREDENTIALS = ("aws_service", "aws_access_key", "aws_secret_access_key", "aws_region")
_REQUIRED = ("method", "url")
#: The members of a request to `http.send`.
_REQUEST = frozenset(
    (
        *_REQUIRED,
        *("body", "raw_body", "headers", "timeout", "cache", "raise_error", "caching_mode", "max_retry_attempts"),
        *("enable_redirect", "force_json_decode", "force_yaml_decode", "cache_ignored_headers"),
        *("force_cache", "force_cache_duration_seconds"),
        *("tls_use_system_certs", "tls_insecure_skip_verify", "tls_server_name"),
        *("tls_ca_cert", "tls_ca_cert_file", "tls_ca_cert_env_variable"),
        *("tls_client_cert", "tls_client_cert_file", "tls_client_cert_env_variable"),
        *("tls_client_key", "tls_client_key_file", "tls_client_key_env_variable"),
    )
)
#: Headers that proxies change.
_NOT_SIGNED = frozenset(("authorization", "user-agent", "x-amzn-trace-id"))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@builtin("providers.aws.sign_req")
def sign_request(request: Value, config: Value, time: Value) -> Value:
    """Add to a request the headers with its signature, version 4."""
    check_object(1, request)
    check_object(1, config)
    _check_credentials(config)
    check_number(1, time)
    # OPA refuses a number that is written with an exponent; one with a fraction of zeros is refused with it.
    if type(time) is not int or not -(1 << 63) <= time < 1 << 63:
        raise OperandError("operand 3 could not convert time_ns value into a unix timestamp")
    unknown, missing = set(request) - _REQUEST, set(_REQUIRED) - set(request)
    if unknown:
        raise OperandError(f"operand 1 invalid request parameters(s): {to_text(unknown)}")
    if missing:
        raise OperandError(f"operand 1 missing required request parameters(s): {to_text(missing)}")
    headers = request.get("headers", {})
    if type(headers) is not dict:
        raise wrong_type(0, headers, "object")
    invalid = {name for name in _REQUIRED if type(request[name]) is not str}
    if invalid:
        raise OperandError(f"operand 1 invalid values for required request parameters(s): {to_text(invalid)}")
    signed = {_string(name): _string(headers[name]) for name in headers}
    signed |= _sign(request, config, _body(request), signed, _EPOCH + timedelta(microseconds=time // 1000))
    return {**request, "headers": signed}


def _check_credentials(config: dict[Value, Value]) -> None:
    missing = set(_CREDENTIALS) - set(config)
    if missing:
        raise OperandError(f"operand 2 missing required AWS config parameters(s): {to_text(missing)}")
    invalid = {name for name in _CREDENTIALS if type(config[name]) is not str}
    if invalid:
        raise OperandError(f"operand 2 invalid values for required AWS config parameters(s): {to_text(invalid)}")


def _string(value: Value) -> str:
    return value if type(value) is str else ""


def _body(request: dict[Value, Value]) -> bytes:
    if "raw_body" in request:
        return _string(request["raw_body"]).encode()
    return write_json(request["body"]).encode() if "body" in request else b""


def _sign(
    request: dict[Value, Value], config: dict[Value, Value], body: bytes, headers: dict[str, str], time: datetime
) -> dict[str, str]:
    try:
        url = parse_url(request["url"])
    except UrlError as error:
        raise BuiltinError(f'parse "{request["url"]}": {error}') from None
    if type(config.get("disable_payload_signing", False)) is not bool:
        raise OperandError("operand 2 invalid value for 'disable_payload_signing' in AWS config")
    digest = "UNSIGNED-PAYLOAD" if config.get("disable_payload_signing") else sha256(body).hexdigest()
    service, region = config["aws_service"], config["aws_region"]
    stamp = time.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    added = {"host": url.host, "x-amz-date": stamp}
    if service in {"s3", "glacier"}:
        added["x-amz-content-sha256"] = digest
    token = _string(config.get("aws_session_token"))
    if token:
        added["x-amz-security-token"] = token
    given = {"".join(char.lower()[0] for char in name): headers[name] for name in sorted(headers)}
    signed = added | {name: value for name, value in given.items() if name not in _NOT_SIGNED}
    names = ";".join(sorted(signed))
    lines = (
        request["method"],
        url.escaped_path,
        url.raw_query,
        *(f"{name}:{signed[name]}" for name in sorted(signed)),
        "",
        names,
        digest,
    )
    canonical = sha256(to_bytes("\n".join(lines))).hexdigest()
    key = f"AWS4{config['aws_secret_access_key']}".encode()
    for part in (stamp[:8], region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{canonical}".encode(), "sha256").hex()
    credential = f"Credential={config['aws_access_key']}/{scope}"
    authorization = f"AWS4-HMAC-SHA256 {credential},SignedHeaders={to_value(names)},Signature={signature}"
    return {"Authorization": authorization, **{name: to_value(value) for name, value in added.items()}}
