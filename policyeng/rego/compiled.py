"""The code of a program, as it is stored."""

from __future__ import annotations

import marshal
import pickle
from _imp import _fix_co_filename  # type: ignore[attr-defined]  # what importlib calls for moved files
from collections.abc import Mapping
from types import CodeType
from typing import NamedTuple

from policyeng.rego.values import Value

#: Which parts of a path below a document are given.
Mask = tuple[int, ...]
#: How many parts of a path a set or an object has that rules build together, whether it is a set, whether it depends on
#: nothing, and the names of the functions that evaluate its parts.
PartialRule = tuple[int, bool, bool, dict[Mask, str]]


class Compiled(NamedTuple):
    """The code of a program.

    Attributes:
        code: of each module, in an order in which they can be run.
        scalars: values of the names `k0`, `k1` ...
        constants: values of the names `K0`, `K1` ...
        base: the name that each part of base data has in the code.
        builtins: the name that each builtin has in the code.
        patterns: the name that each constant regular expression has in the code.
        rules: name of the function of each rule and document by its path.
        functions: names of rules that take arguments.
        parts: sets and objects that are also evaluated in part, by their paths.
    """

    code: list[CodeType]
    scalars: list[Value]
    constants: list[Value]
    base: dict[tuple[str, ...], str]
    builtins: dict[str, str]
    patterns: dict[str, str]
    rules: dict[tuple[str, ...], str]
    functions: frozenset[tuple[str, ...]]
    parts: dict[tuple[str, ...], PartialRule]

    def dump(self) -> bytes:
        """Return it as bytes that only this version of Python reads."""
        return marshal.dumps((self.code, self.dump_rest()))

    def dump_rest(self) -> bytes:
        """Return all but the code as bytes that every version of Python reads."""
        return pickle.dumps(self[1:], protocol=5)

    @staticmethod
    def load(stored: bytes | memoryview, files: Mapping[str, str] | None = None) -> Compiled:
        """Read the result of `dump`; the bytes must come from a place to which no one else can write.

        Args:
            stored: the bytes.
            files: the names that the code gets for its files, by the names with which it was compiled.

        Raises:
            ValueError: they are cut off.
        """
        try:
            code, rest = marshal.loads(stored)  # noqa: S302  # code of ours from a private file
            compiled = Compiled(code, *pickle.loads(rest))  # noqa: S301  # as above
        except (EOFError, TypeError, pickle.UnpicklingError) as error:
            raise ValueError(f"not a compiled program: {error}") from error
        if files is not None:
            # In place: copies of all functions take as long as reading them.
            for module in compiled.code:
                _fix_co_filename(module, files.get(module.co_filename, module.co_filename))
        return compiled
