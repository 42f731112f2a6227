"""The functions of ARM templates that go over a list or an object with a lambda.

Each takes the values before the lambda, and the lambda as a function of values; it raises ExpressionError.
Source: https://learn.microsoft.com/azure/azure-resource-manager/templates/template-functions-lambda.
"""

from __future__ import annotations

from collections.abc import Callable

from policyeng.sources.arm_template.expressions import ExpressionError
from policyeng.sources.arm_template.functions import a_list
from policyeng.sources.template_parameters import Unresolved


def filtered(given: list[object], call: Callable[..., object]) -> object:
    """The entries that a lambda of the entry and its index says yes to; unresolved where it does not say."""
    kept: list[object] = []
    for index, entry in enumerate(a_list(given[0])):
        keep = call(entry, index)
        if not isinstance(keep, bool):
            return keep if isinstance(keep, Unresolved) else Unresolved("a filter gives true or false", "{filter}")
        if keep:
            kept.append(entry)
    return kept


def mapped(given: list[object], call: Callable[..., object]) -> object:
    """What a lambda of the entry and its index makes of each entry."""
    return [call(entry, index) for index, entry in enumerate(a_list(given[0]))]


def reduced(given: list[object], call: Callable[..., object]) -> object:
    """What a lambda of the value so far, the entry and its index makes of all entries."""
    if len(given) != 2:
        raise ExpressionError("`reduce` takes a list, a first value and a lambda")
    value = given[1]
    for index, entry in enumerate(a_list(given[0])):
        value = call(value, entry, index)
    return value


def mapped_values(given: list[object], call: Callable[..., object]) -> object:
    """An object with what a lambda makes of each of its values."""
    if not isinstance(given[0], dict):
        raise ExpressionError("`mapValues` takes an object")
    return {key: call(value) for key, value in given[0].items()}
