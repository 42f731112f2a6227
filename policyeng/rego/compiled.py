"""The code of a program, as it is stored."""

from __future__ import annotations

import marshal
import pickle
from types import CodeType
from typing import NamedTuple

from policyeng.rego.values import Value


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
    """

    code: list[CodeType]
    scalars: list[Value]
    constants: list[Value]
    base: dict[tuple[str, ...], str]
    builtins: dict[str, str]
    patterns: dict[str, str]
    rules: dict[tuple[str, ...], str]
    functions: frozenset[tuple[str, ...]]

    def dump(self) -> bytes:
        """Return it as bytes that only this version of Python reads."""
        rest = pickle.dumps(
            (self.scalars, self.constants, self.base, self.builtins, self.patterns, self.rules, self.functions)
        )
        return marshal.dumps((self.code, rest))

    @staticmethod
    def load(stored: bytes | memoryview) -> Compiled:
        """Read the result of `dump`; the bytes must come from a place to which no one else can write.

        Raises:
            ValueError: they are cut off.
        """
        try:
            code, rest = marshal.loads(stored)  # noqa: S302  # code of ours from a private file
            return Compiled(code, *pickle.loads(rest))  # noqa: S301  # as above
        except (EOFError, TypeError, pickle.UnpicklingError) as error:
            raise ValueError(f"not a compiled program: {error}") from error
