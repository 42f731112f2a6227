"""Classes of `policyeng.named` are named tuples in every respect that matters here."""

from __future__ import annotations

import copy
import pickle
import typing

import pytest
from pydantic import TypeAdapter

from policyeng.named import NamedTuple


class Point(NamedTuple):
    """Two numbers."""

    x: int
    y: int = 0

    @property
    def total(self) -> int:
        """Both together."""
        return self.x + self.y


class Standard(typing.NamedTuple):
    """The same of the standard library."""

    x: int
    y: int = 0


def test_they_are_made_and_read_as_those_of_the_standard_library_are() -> None:
    """By position and by name, with defaults, equality, patterns and a text."""
    assert Point(1) == Point(x=1, y=0) == (1, 0)
    assert repr(Point(1)) == repr(Standard(1)).replace("Standard", "Point")
    assert Point(1)._replace(y=2) == Point._make([1, 2]) == (1, 2)
    assert Point(1)._asdict() == Standard(1)._asdict()
    assert (Point._fields, Point._field_defaults) == (Standard._fields, Standard._field_defaults)
    assert Point(1, 2).total == 3
    match Point(1, 2):
        case Point(x, y):
            assert (x, y) == (1, 2)


def test_they_are_copied_stored_and_validated() -> None:
    """As pydantic and pickle expect."""
    point = Point(1, 2)
    assert copy.deepcopy(point) == pickle.loads(pickle.dumps(point)) == point  # noqa: S301  # our own
    assert type(copy.copy(point)) is Point
    assert TypeAdapter(Point).validate_python({"x": 3}) == Point(3)


@pytest.mark.parametrize("given", [{}, {"x": 1, "z": 2}])
def test_wrong_arguments_are_refused(given: dict[str, int]) -> None:
    """By name of the class."""
    with pytest.raises(TypeError, match=r"Point\.__new__"):
        Point(**given)
    with pytest.raises(TypeError, match="z"):
        Point(1)._replace(z=1)  # type: ignore[call-arg]  # wrong on purpose
    with pytest.raises(AttributeError):
        Point(1).x = 2  # type: ignore[misc]  # refused


def test_a_field_without_a_default_comes_first() -> None:
    """As for the arguments of a function."""
    with pytest.raises(TypeError, match="after one with a default"):
        exec("class Wrong(NamedTuple):\n    a: int = 1\n    b: int\n", {"NamedTuple": NamedTuple, "__name__": "x"})  # noqa: S102  # a class that type checkers refuse
