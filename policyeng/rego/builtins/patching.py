"""A value that the operations of a JSON patch change, part by part, as the `edittree` of OPA does."""

from __future__ import annotations

from typing import Any

from policyeng.rego.builtins.registry import BuiltinError
from policyeng.rego.numbers import parse_int64, to_int64
from policyeng.rego.values import UNDEFINED, Value, is_number, to_key

_COMPOSITES = (dict, list, set)
#: A key that is deleted, or a place of an array that still has its element.
_DELETED = object()
_UNCHANGED = object()


class EditTree:
    """A value and the changes of its children.

    The changes of an array are its places: an element that was inserted, a tree of one, or one of the elements that
    are left, in their order. The changes of an object or a set are those by key.
    """

    __slots__ = ("_changes", "_left", "_places", "_value")

    def __init__(self, value: Value) -> None:
        """Take a value; it stays as it is."""
        self._set(value)

    def _set(self, value: Value) -> None:
        self._value = value
        self._changes: dict[Any, Any] = {}
        is_array = type(value) is list
        self._left: list[Value] = list(value) if is_array else []
        self._places: list[Any] = [_UNCHANGED] * len(value) if is_array else []

    def insert_at(self, path: list[Value], value: Value) -> None:
        """Insert a value at the end of a path."""
        if path:
            self._unfold(path[:-1])._insert(path[-1], value)
        else:
            self._set(value)

    def delete_at(self, path: list[Value]) -> None:
        """Delete what is at the end of a path."""
        if path:
            self._unfold(path[:-1])._delete(path[-1])
        elif self._value is UNDEFINED:
            raise BuiltinError("deleted node encountered during delete operation")
        else:
            self._set(UNDEFINED)

    def render_at(self, path: list[Value]) -> Value:
        """Return the value at the end of a path."""
        return self._unfold(path).render()

    def render(self) -> Value:
        """Return the value with its changes."""
        kind = type(self._value)
        if kind is list:
            left = iter(self._left)
            return [next(left) if one is _UNCHANGED else _render(one) for one in self._places]
        if kind is dict and self._changes:
            kept = {key: value for key, value in self._value.items() if key not in self._changes}
            return kept | {key: _render(one) for key, one in self._changes.items() if one is not _DELETED}
        if kind is set and self._changes:
            changed = (to_key(_render(one)) for one in self._changes.values() if one is not _DELETED)
            return (self._value - self._changes.keys()).union(changed)
        if self._value is UNDEFINED:
            raise BuiltinError("the whole document is removed")
        return self._value

    def _insert(self, key: Value, value: Value) -> Value:
        """Insert a child; return the tree of it."""
        kind = type(self._value)
        # The tree of a scalar is not kept: nothing can change in it.
        child = EditTree(value)
        kept = child if type(value) in _COMPOSITES else value
        if kind is dict:
            self._changes[to_key(key)] = kept
        elif kind is set:
            if to_key(key) != to_key(value):
                raise BuiltinError("set key does not equal value to be inserted")
            self._collapse(key)
            self._changes[to_key(key)] = kept
        elif kind is list:
            index = self._to_index(key)
            if not 0 <= index <= len(self._places):
                raise BuiltinError("index for array insertion out of bounds")
            self._places.insert(index, kept)
        else:
            raise _expect_composite(self._value)
        return child

    def _delete(self, key: Value) -> None:
        kind = type(self._value)
        if kind is list:
            index = self._to_index(key)
            if not 0 <= index < len(self._places):
                raise BuiltinError("index for array delete out of bounds")
            if self._places[index] is _UNCHANGED:
                del self._left[self._places[:index].count(_UNCHANGED)]
            del self._places[index]
            return
        if kind is not dict and kind is not set:
            raise _expect_composite(self._value)
        if kind is set:
            self._collapse(key)
        found = to_key(key)
        if self._changes.get(found) is _DELETED:
            raise BuiltinError("cannot delete the already deleted node")
        if found not in self._changes and found not in self._value:
            raise BuiltinError("cannot delete child key that does not exist")
        self._changes[found] = _DELETED

    def _unfold(self, path: list[Value]) -> EditTree:
        """Return the tree at the end of a path."""
        tree = self
        for key in path:
            tree = tree._unfold_one(key)
        return tree

    def _unfold_one(self, key: Value) -> EditTree:
        kind = type(self._value)
        if kind is list:
            return self._unfold_element(self._to_index(key))
        if kind is not dict and kind is not set:
            raise _expect_composite(self._value)
        if kind is set:
            self._collapse(key)
        found = to_key(key)
        if found in self._changes:
            return _get_tree(self._changes[found])
        if found not in self._value:
            raise BuiltinError(f"path does not exist in {'set' if kind is set else 'object'} term")
        return self._insert(key, self._value[found] if kind is dict else key)  # type: ignore[no-any-return]  # a tree

    def _unfold_element(self, index: int) -> EditTree:
        if 0 <= index < len(self._places) and self._places[index] is not _UNCHANGED:
            return _get_tree(self._places[index])
        # OPA takes the element that was at the index at first, even if another one is there now.
        if not 0 <= index < len(self._value):
            raise BuiltinError("path does not exist in array term")
        self._delete(index)
        return self._insert(index, self._value[index])  # type: ignore[no-any-return]  # a tree

    def _collapse(self, key: Value) -> None:
        """Apply the changes of a set before a member that is a collection is looked for."""
        if type(key) in _COMPOSITES:
            self._set(self.render())

    def _to_index(self, key: Value) -> int:
        if type(key) is str:
            if key == "-":
                return len(self._places)
            index = parse_int64(key)
            if index is not None and key != "0" and key.startswith("0"):
                raise BuiltinError("leading zeros are not allowed in JSON paths")
        else:
            index = to_int64(key) if is_number(key) else None
        if index is None:
            raise BuiltinError("invalid type or string for indexing")
        return index


def _render(child: Value) -> Value:
    return child.render() if type(child) is EditTree else child


def _get_tree(child: Value) -> EditTree:
    if child is _DELETED:
        raise BuiltinError("cannot unfold the already deleted node")
    return child if type(child) is EditTree else EditTree(child)


def _expect_composite(value: Value) -> BuiltinError:
    return BuiltinError("deleted node" if value is UNDEFINED else "expected composite type")
