"""Classes of `policyeng.frozen` are dataclasses in every respect that matters here."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, fields, replace
from functools import cached_property

import pytest
from pydantic import TypeAdapter

from policyeng.frozen import changing, field, frozen


@frozen
class Point:
    """Two numbers, and what does not count."""

    x: int
    y: int = 0
    notes: dict[str, str] = field(default_factory=dict, compare=False, repr=False)
    name: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x is below 0")

    @cached_property
    def total(self) -> int:
        """Work something out once."""
        return self.x + self.y


@frozen(kw_only=True)
class Named(Point):
    """One with a further field."""

    z: int = 1


@changing
class Count:
    """A number that changes."""

    number: int = 0


def test_they_are_made_and_compared_as_dataclasses_are() -> None:
    """By position and by name, with defaults, equality, a hash and a text."""
    assert Point(1) == Point(x=1, y=0, notes={"a": "b"}) != Point(1, 2)
    assert hash(Point(1)) == hash(Point(1, notes={"a": "b"}))
    assert repr(Point(1, name="n")) == "Point(x=1, y=0, name='n')"
    assert Point(1) != Named(x=1)
    assert [entry.name for entry in fields(Named)] == ["x", "y", "notes", "name", "z"]
    assert replace(Point(1, 2), y=3) == Point(1, 3)
    assert Point(1).notes is not Point(1).notes


@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        ((), {}, "Point lacks the argument `x`"),
        ((1, 2, {}, "n"), {}, "Point takes 3 arguments without names, and was given 4"),
        ((1,), {"x": 2}, "Point was given the argument `x` twice"),
        ((1,), {"w": 2}, "Point takes no argument `w`"),
        ((), {"w": 2}, "Point takes no argument `w`"),
    ],
)
def test_wrong_arguments_are_named(arguments: tuple[object, ...], named: dict[str, object], message: str) -> None:
    """Each with what is wrong with it."""
    with pytest.raises(TypeError) as refused:
        Point(*arguments, **named)  # type: ignore[arg-type]  # wrong on purpose
    assert str(refused.value) == message


def test_they_do_not_change_unless_they_are_meant_to() -> None:
    """A frozen one refuses; the other has no hash."""
    point, count = Point(1), Count()
    with pytest.raises(FrozenInstanceError):
        point.x = 2  # type: ignore[misc]  # refused
    with pytest.raises(FrozenInstanceError):
        del point.x
    count.number = 3
    assert count == Count(3)
    with pytest.raises(TypeError):
        hash(count)


def test_they_are_copied_stored_and_validated() -> None:
    """Copies are equal, and pydantic runs what checks them."""
    point = Point(1, notes={"a": "b"})
    assert point.total == 1
    assert copy.deepcopy(point) == pickle.loads(pickle.dumps(point)) == point  # noqa: S301  # our own
    assert TypeAdapter(Point).validate_python({"x": 3}) == Point(3)
    with pytest.raises(ValueError, match="below 0"):
        TypeAdapter(Point).validate_python({"x": -1})
    with pytest.raises(ValueError, match="below 0"):
        Point(-1)
