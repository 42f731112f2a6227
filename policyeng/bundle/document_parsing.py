"""Strict parsing of a bundle's JSON and YAML; faults are `BundleError`s."""

from __future__ import annotations

from policyeng.errors import BundleError, InputError
from policyeng.parsing.json_text import parse_json


def bundle_json(content: bytes, place: str) -> object:
    """Return a JSON document of a bundle.

    Raises:
        BundleError: what `parse_json` refuses, with its place.
    """
    try:
        return parse_json(content, place)
    except InputError as error:
        raise BundleError(error.message, place=error.place, remedy=error.remedy) from error


def bundle_yaml(text: str, place: str) -> object:
    """Return a YAML document of a bundle.

    Raises:
        BundleError: what `parse_yaml` refuses, with its place.
    """
    from policyeng.parsing.yaml_text import parse_yaml  # most runs find every header in the cache

    try:
        return parse_yaml(text.encode(), place).value
    except InputError as error:
        raise BundleError(error.message, place=error.place, remedy=error.remedy) from error


def bundle_manifests(text: str, place: str) -> list[object]:
    """Return the documents of a YAML file as Kubernetes reads them.

    Raises:
        BundleError: what `parse_kubernetes_yaml` refuses, with its place.
    """
    from policyeng.parsing.yaml_text import parse_kubernetes_yaml  # most bundles hold none

    try:
        return [document.value for document in parse_kubernetes_yaml(text.encode(), place)]
    except InputError as error:
        raise BundleError(error.message, place=error.place, remedy=error.remedy) from error
