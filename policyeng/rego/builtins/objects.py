"""Operations of objects, and the removal and choice of paths in them."""

from __future__ import annotations

from typing import Any

from policyeng.rego.budget import charge, charged
from policyeng.rego.builtins.registry import (
    BuiltinError,
    OperandError,
    builtin,
    check_array,
    check_object,
    wrong_element,
    wrong_type,
)
from policyeng.rego.numbers import parse_int64, to_int64
from policyeng.rego.values import (
    UNDEFINED,
    Value,
    equal,
    from_key,
    is_number,
    make_set,
    members,
    to_key,
    type_name,
)

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
        # OPA takes the element that was at the index at first, even if the index now has another one.
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


_Keys = dict[Any, Any]


@builtin("object.get")
def get_value(container: Value, path: Value, default: Value) -> Value:
    """Return the value of a key, or at the end of a path of keys, or a default."""
    if type(container) is not dict:
        check_object(1, container)
    if type(path) is str:
        return container.get(path, default)
    if type(path) is not list:
        return container.get(to_key(path), default)
    found = container
    for part in path:
        is_name = type(found) is dict and type(part) is str
        found = found.get(part, UNDEFINED) if is_name else _get_part(found, part)
        if found is UNDEFINED:
            return default
    return found


def _get_part(found: Value, part: Value) -> Value:
    kind = type(found)
    if kind is dict:
        return found.get(to_key(part), UNDEFINED)
    if kind is list:
        index = to_int64(part) if is_number(part) else None
        return found[index] if index is not None and 0 <= index < len(found) else UNDEFINED
    if kind is set and to_key(part) in found:
        return part
    return UNDEFINED


@builtin("object.keys")
def list_keys(container: Value) -> Value:
    """Return the set of the keys."""
    return charged(set(check_object(1, container)))


@builtin("object.remove")
def remove_keys(container: Value, keys: Value) -> Value:
    """Return the values of the other keys."""
    check_object(1, container)
    unwanted = _list_keys(keys)
    return charged({key: value for key, value in container.items() if key not in unwanted})


@builtin("object.filter")
def filter_keys(container: Value, keys: Value) -> Value:
    """Return the values of the keys."""
    check_object(1, container)
    wanted = _list_keys(keys)
    return charged({key: value for key, value in container.items() if key in wanted})


def _list_keys(keys: Value) -> Value:
    if type(keys) is list:
        return make_set(keys)
    if type(keys) is set or type(keys) is dict:
        return keys
    raise wrong_type(2, keys, "object", "set", "array")


@builtin("object.union")
def merge(left: Value, right: Value) -> Value:
    """Merge two objects; of values that are not both objects the right one counts."""
    check_object(1, left)
    check_object(2, right)
    charge(len(left))
    merged = dict(left)
    _merge(merged, right, set())
    return merged


@builtin("object.union_n")
def merge_all(containers: Value) -> Value:
    """Merge objects, as `object.union` one after the other."""
    wrong = next((one for one in check_array(1, containers) if type(one) is not dict), UNDEFINED)
    if wrong is not UNDEFINED:
        raise wrong_element(1, containers, wrong, "object")
    merged: _Keys = {}
    copies: set[int] = set()
    for one in containers:
        _merge(merged, one, copies)
    return merged


def _merge(target: _Keys, source: _Keys, copies: set[int]) -> None:
    """Merge into a target, whose values are copied before they change, unless they are among the copies."""
    for key, value in source.items():
        before = target.get(key)
        if type(before) is dict and type(value) is dict:
            if id(before) not in copies:
                charge(len(before))
                before = target[key] = dict(before)
                copies.add(id(before))
            _merge(before, value, copies)
        else:
            target[key] = value


@builtin("object.subset")
def check_subset(whole: Value, part: Value) -> Value:
    """Check that what is in one collection is in another; in objects values are compared so, too."""
    kind, other = type(whole), type(part)
    if kind is other and kind in (dict, set, list):
        return _contains(whole, part)
    if kind is list and other is set:
        return _contains_members(whole, part)
    raise OperandError("both arguments object.subset must be of the same type or array and set")


def _contains(whole: Value, part: Value) -> bool:
    kind = type(whole)
    if kind is type(part):
        if kind is dict:
            return all(key in whole and _contains(whole[key], value) for key, value in part.items())
        if kind is set:
            return bool(part <= whole)
        if kind is list:
            return _contains_row(whole, part)
    return equal(whole, part)


def _contains_row(whole: list[Value], part: list[Value]) -> bool:
    if not part:
        return True
    keys, wanted = list(map(to_key, whole)), list(map(to_key, part))
    for start in range(len(keys) - len(wanted) + 1):
        if keys[start] == wanted[0]:
            # Each comparison takes time.
            charge(len(wanted))
            if keys[start : start + len(wanted)] == wanted:
                return True
    return False


def _contains_members(whole: list[Value], part: set[Value]) -> bool:
    # OPA counts a member again where it is again, and finds nothing in an empty array.
    return bool(whole) and sum(to_key(one) in part for one in whole) >= len(part)


@builtin("json.filter")
def filter_paths(container: Value, paths: Value) -> Value:
    """Return what is at paths."""
    check_object(1, container)
    return _filter(container, _make_tree(paths))


def _filter(value: Value, tree: _Keys | None) -> Value:
    if tree is None:
        return value
    kind = type(value)
    if kind is list:
        return [_filter(one, tree[str(index)]) for index, one in enumerate(value) if str(index) in tree]
    if kind is set:
        return make_set(_filter(from_key(key), tree[key]) for key in value if key in tree)
    if kind is dict:
        return {key: _filter(one, tree[key]) for key, one in value.items() if key in tree}
    return value


@builtin("json.remove")
def remove_paths(container: Value, paths: Value) -> Value:
    """Return what is not at paths."""
    check_object(1, container)
    return _remove(container, _make_tree(paths))


def _remove(value: Value, tree: _Keys) -> Value:
    kind = type(value)
    if kind is dict:
        kept = ((key, _remove_at(one, tree, key)) for key, one in value.items())
        return {key: one for key, one in kept if one is not UNDEFINED}
    if kind is list:
        found = [_remove_at(one, tree, str(index)) for index, one in enumerate(value)]
    elif kind is set:
        found = [_remove_at(from_key(key), tree, key) for key in value]
    else:
        return value
    left = [one for one in found if one is not UNDEFINED]
    return make_set(left) if kind is set else left


def _remove_at(value: Value, tree: _Keys, key: Value) -> Value:
    if key not in tree:
        return value
    return UNDEFINED if tree[key] is None else _remove(value, tree[key])


def _make_tree(paths: Value) -> _Keys:
    """Return nested keys with None where a path ends; a path through the end of another counts as that."""
    if type(paths) is set:
        paths = members(paths)
    if type(paths) is not list:
        raise wrong_type(2, paths, "set", "array")
    root: _Keys = {}
    for path in map(parse_path, paths):
        node: _Keys | None = root
        for part in path[:-1]:
            if node is not None:
                node = node.setdefault(to_key(part), {})
        if path and node is not None:
            node[to_key(path[-1])] = None
    return root


def parse_path(path: Value) -> list[Value]:
    """Return the parts of a path: of an array, or of a JSON pointer.

    Raises:
        OperandError: it is neither.
    """
    if type(path) is list:
        return path
    if type(path) is not str:
        wanted = "one of {set, array} containing string paths or array of path segments"
        raise OperandError(f"operand 2 must be {wanted} but got {type_name(path)}")
    if not path:
        return []
    return [part.replace("~1", "/").replace("~0", "~") for part in path.lstrip("/").split("/")]


@builtin("json.patch")
def apply_patch(document: Value, operations: Value) -> Value:
    """Apply the operations of a JSON patch."""
    check_array(2, operations)
    tree = EditTree(document)
    for operation in operations:
        if type(operation) is not dict:
            raise BuiltinError("must be an array of JSON-Patch objects, but at least one element is not an object")
        _apply(tree, operation)
    return tree.render()


def _apply(tree: EditTree, operation: _Keys) -> None:
    path, name = _get_attribute(operation, "path"), _get_attribute(operation, "op")
    if type(name) is not str:
        raise BuiltinError(f"attribute 'op' must be a string but found: {type_name(name)}")
    parts = parse_path(path)
    if name == "add":
        tree.insert_at(parts, _get_attribute(operation, "value"))
    elif name == "remove":
        tree.delete_at(parts)
    elif name == "replace":
        tree.delete_at(parts)
        tree.insert_at(parts, _get_attribute(operation, "value"))
    elif name == "move":
        source = parse_path(_get_attribute(operation, "from"))
        moved = tree.render_at(source)
        tree.delete_at(source)
        tree.insert_at(parts, moved)
    elif name == "copy":
        copied = tree.render_at(parse_path(_get_attribute(operation, "from")))
        # A copy of a whole that has copies in it grows with a power of two.
        _charge_for(copied)
        tree.insert_at(parts, copied)
    elif name == "test":
        if not equal(tree.render_at(parts), _get_attribute(operation, "value")):
            raise BuiltinError("value from EditTree != patch value")
    else:
        raise BuiltinError(f"unrecognized op: '{name}'")


def _get_attribute(operation: _Keys, name: str) -> Value:
    if name not in operation:
        raise BuiltinError(f"missing required attribute '{name}'")
    return operation[name]


def _charge_for(value: Value) -> None:
    pending = [value]
    while pending:
        one = pending.pop()
        if type(one) is dict:
            charge(len(one))
            pending += one.values()
        elif type(one) is list:
            charge(len(one))
            pending += one
