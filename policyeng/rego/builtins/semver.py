"""Builtins that compare semantic versions."""

from __future__ import annotations

import re

from policyeng.rego.builtins.registry import BuiltinError, builtin, check_string
from policyeng.rego.values import Value

_IDENTIFIERS = re.compile(r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*")
_NUMERIC = re.compile(r"0|[1-9][0-9]*")
_LARGEST = (1 << 63) - 1

_Version = tuple[tuple[int, ...], list[str]]


@builtin("semver.is_valid")
def is_valid_version(version: Value) -> Value:
    """Return whether a value is a semantic version."""
    return type(version) is str and _parse(version) is not None


@builtin("semver.compare")
def compare_versions(left: Value, right: Value) -> Value:
    """Return -1, 0 or 1 where the first version is less than, equal to or greater than the second."""
    check_string(1, left)
    check_string(2, right)
    versions = []
    for position, text in enumerate((left, right), 1):
        version = _parse(text)
        if version is None:
            raise BuiltinError(f"operand {position}: string {text} is not a valid SemVer")
        versions.append(version)
    (first, first_release), (second, second_release) = versions
    if first != second:
        return 1 if first > second else -1
    return _compare_releases(first_release, second_release)


def _parse(text: str) -> _Version | None:
    core, plus, metadata = text.removeprefix("v").partition("+")
    core, minus, release = core.partition("-")
    if plus and not _IDENTIFIERS.fullmatch(metadata):
        return None
    if minus and not _IDENTIFIERS.fullmatch(release):
        return None
    identifiers = release.split(".") if minus else []
    if any(len(one) > 1 and one[0] == "0" and one.isdigit() for one in identifiers):
        return None
    parts = core.split(".")
    if len(parts) != 3 or not all(len(part) < 20 and _NUMERIC.fullmatch(part) for part in parts):
        return None
    numbers = tuple(map(int, parts))
    return (numbers, identifiers) if max(numbers) <= _LARGEST else None


def _compare_releases(left: list[str], right: list[str]) -> int:
    if left == right:
        return 0
    if not left or not right:
        return 1 if not left else -1
    for first, second in zip(left, right, strict=False):
        if first == second:
            continue
        numeric, other_numeric = first.isdigit(), second.isdigit()
        if numeric != other_numeric:
            return -1 if numeric else 1
        # Go reads a number beyond 64 bits as the largest one.
        ours = (_saturate(first), "") if numeric else (0, first)
        theirs = (_saturate(second), "") if numeric else (0, second)
        if ours != theirs:
            return 1 if ours > theirs else -1
    if len(left) == len(right):
        raise BuiltinError("the versions differ only in numbers beyond 64 bits")  # OPA does not end here
    return 1 if len(left) > len(right) else -1


def _saturate(digits: str) -> int:
    return _LARGEST if len(digits) > 19 else min(int(digits), _LARGEST)
