"""Make Python code of generated text, with the lines and names of the Rego text that it is generated from.

It imports only the standard library, so that `tools/compile_policies.py` can run this file in each version of Python
that has code in the wheel.
"""

from __future__ import annotations

import marshal
import pickle
import sys
from collections.abc import Mapping, Sequence
from importlib.util import MAGIC_NUMBER
from itertools import pairwise
from types import CodeType
from typing import BinaryIO, NamedTuple


class GeneratedModule(NamedTuple):
    """The Python text that a Rego module is compiled to.

    Attributes:
        file: of the Rego text.
        text: the Python text.
        lines: of the Rego text, one for each line of the Python text.
    """

    file: str
    text: str
    lines: Sequence[int]


class GeneratedProgram(NamedTuple):
    """The Python text of a program, which is the same for every version of Python.

    Attributes:
        modules: in an order in which they can be run.
        written: names of variables in the Rego text, by function and local variable.
        rest: the pickled fields of `Compiled` after the code.
    """

    modules: Sequence[GeneratedModule]
    written: Mapping[str, Mapping[str, str]]
    rest: bytes

    def dump(self) -> bytes:
        """Return the program as bytes that only this version of Python reads, for `Compiled.load`."""
        return marshal.dumps(([assemble(GeneratedModule(*module), self.written) for module in self.modules], self.rest))


def assemble(module: GeneratedModule, written: Mapping[str, Mapping[str, str]]) -> CodeType:
    """Return the code of a module.

    Args:
        module: the text.
        written: names of variables in the Rego text, by function and local variable.

    Raises:
        SyntaxError, RecursionError, SystemError: blocks or terms are nested too deeply for Python.
    """
    code = compile(module.text or "pass", module.file, "exec", dont_inherit=True, optimize=2)
    return _relocate(code, module.lines or [1], written)


def _relocate(code: CodeType, lines: Sequence[int], written: Mapping[str, Mapping[str, str]]) -> CodeType:
    """Put lines and names of the Rego text in the place of those of the generated text.

    Tracebacks, debuggers and coverage read them from the code, whose table of lines is described in CPython's
    `Objects/locations.md`.

    Args:
        code: of the generated text.
        lines: of the Rego text, one for each line of the generated text.
        written: names of variables in the Rego text, by function and local variable.
    """
    local_names = written.get(code.co_name, {})
    taken = {local_names[name] for name in code.co_varnames if name in local_names}
    names: dict[str, None] = {}
    for name in code.co_varnames:
        shown = local_names.get(name, f"_{name}" if name in taken else name)
        # Variables of two bodies may have the same name.
        names[name if shown in names else shown] = None
    first = lines[code.co_firstlineno - 1]
    runs = [(0, first)]
    for start, _, generated in code.co_lines():
        line = runs[-1][1] if generated is None else lines[max(generated, 1) - 1]
        if line != runs[-1][1]:
            runs.append((start, line))
    table = bytearray()
    last = first
    for (start, line), (end, _) in pairwise([*runs, (len(code.co_code), 0)]):
        for offset in range(start, end, 16):
            # An entry has at most eight code units, and no columns.
            table.append(0xE8 | (min(end - offset, 16) // 2 - 1))
            change = (line - last) << 1 if line >= last else (last - line) << 1 | 1
            while change > 63:
                table.append(change & 63 | 64)
                change >>= 6
            table.append(change)
            last = line
    constants = tuple(
        _relocate(part, lines, written) if isinstance(part, CodeType) else part for part in code.co_consts
    )
    return code.replace(co_consts=constants, co_varnames=tuple(names), co_firstlineno=first, co_linetable=bytes(table))


def _main(read: BinaryIO, write: BinaryIO) -> None:
    """Compile texts of Python modules by name, and programs; write the result with what identifies this Python."""
    modules, programs = pickle.load(read)  # noqa: S301  # from the process that started this one
    pickle.dump(
        (
            sys.implementation.cache_tag,
            MAGIC_NUMBER.hex(),
            {name: marshal.dumps(compile(text, name, "exec")) for name, text in modules.items()},
            [GeneratedProgram(*program).dump() for program in programs],
        ),
        write,
        protocol=5,
    )


if __name__ == "__main__":
    _main(sys.stdin.buffer, sys.stdout.buffer)
