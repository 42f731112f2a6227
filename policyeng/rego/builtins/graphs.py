"""Walks through graphs and values."""

from __future__ import annotations

from typing import Any

from policyeng.rego.budget import charge
from policyeng.rego.builtins.registry import builtin, check_object, wrong_type
from policyeng.rego.values import Value, from_key, ordered_keys, to_key


@builtin("graph.reachable")
def find_reachable(graph: Value, initial: Value) -> Value:
    """Return the set of the vertices of a graph that are reachable from initial ones."""
    check_object(1, graph)
    queue = _list_initial(initial)
    reached = set()
    while queue:
        vertex = queue.pop()
        if vertex not in reached and vertex in graph:
            reached.add(vertex)
            queue += _list_vertices(graph[vertex])
    return reached


def _list_initial(initial: Value) -> list[Value]:
    if type(initial) is not list and type(initial) is not set:
        raise wrong_type(2, initial, "{array, set}")
    return _list_vertices(initial)


def _list_vertices(collection: Value) -> list[Value]:
    if type(collection) is list:
        return [to_key(one) for one in collection]
    return list(collection) if type(collection) is set else []


@builtin("graph.reachable_paths")
def find_reachable_paths(graph: Value, initial: Value) -> Value:
    """Return the set of the paths through a graph from initial vertices to where they end or would repeat."""
    check_object(1, graph)
    found = set()
    for first in _list_initial(initial):
        if first not in graph:
            continue
        after = _list_vertices(graph[first])
        if not after:
            found.add(to_key([from_key(first)]))
        steps: list[tuple[tuple[Any, ...], Any]] = [((first,), vertex) for vertex in after]
        while steps:
            path, vertex = steps.pop()
            charge(len(path))
            if vertex in graph:
                path = (*path, vertex)
                after = _list_vertices(graph[vertex])
                steps += [(path, one) for one in after if one not in path]
                if after and not any(one in path for one in after):
                    continue
            found.add(to_key([from_key(one) for one in path]))
    return found


@builtin("walk")
def list_paths(value: Value) -> Value:
    """List a pair of path and value for a value and everything in it, in the order of OPA."""
    found = []
    steps: list[tuple[list[Value], Value]] = [([], value)]
    while steps:
        path, node = steps.pop()
        charge(len(path) + 1)
        found.append([path, node])
        kind = type(node)
        if kind is dict:
            steps += [([*path, from_key(key)], node[key]) for key in reversed(ordered_keys(node))]
        elif kind is list:
            steps += [([*path, index], node[index]) for index in range(len(node) - 1, -1, -1)]
        elif kind is set:
            steps += [([*path, one], one) for one in map(from_key, reversed(ordered_keys(node)))]
    return found
