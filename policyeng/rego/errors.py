"""Errors of Rego text: where they are, the line itself and what to do about them."""

from __future__ import annotations

import linecache
from bisect import bisect_right
from functools import cached_property

from policyeng.frozen import field, frozen

#: The code of what exceeds a limit; OPA has none for it.
LIMIT_ERROR = "rego_limit_error"


@frozen
class ModuleText:
    """The text of one module.

    Attributes:
        file: how messages name it.
        text: what it contains.
    """

    file: str
    text: str

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        while newline := self.text.find("\n", starts[-1]) + 1:
            starts.append(newline)
        return starts

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line and the column of an offset, both from 1; columns count code points."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        """Return a line without its end."""
        start = self._starts[number - 1]
        end = self._starts[number] if number < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")


#: Columns of a line that an error repeats, so that it fits into a terminal of 80.
_WIDEST = 76
_SIDES = ("have: ", "want: ", "left: ", "right: ")


def remember_text(file: str, text: str) -> None:
    """Have tracebacks and debuggers show the lines of a module that is in no file, such as one of an archive."""
    # An entry of one function is what Python itself has for a module whose loader knows the text.
    linecache.cache[file] = (lambda: text,)


@frozen
class Diagnostic:
    """One thing that is wrong with a module.

    Attributes:
        code: as OPA names it, such as `rego_parse_error`.
        message: without a final period.
        hints: what may fix it.
    """

    code: str
    message: str
    source: ModuleText
    offset: int
    hints: tuple[str, ...] = field(default=())

    @property
    def line(self) -> int:
        """The line, from 1."""
        return self.source.position(self.offset)[0]

    @property
    def column(self) -> int:
        """The column, from 1, in code points."""
        return self.source.position(self.offset)[1]

    def __str__(self) -> str:
        """Format it as file, line, column, code and message, then the line with a caret, then the hints."""
        line, place = self.source.position(min(self.offset, len(self.source.text)))
        column = place
        text = self.source.line(line)
        if len(text.expandtabs(8)) > _WIDEST:
            # A caret below a line that the terminal wraps would point to something else.
            start = max(0, column - _WIDEST // 2)
            text, column = text[start : start + _WIDEST - 6].strip("\t"), column - start
            if start:
                text, column = f"...{text}", column + 3
            text = f"{text}..." if len(self.source.line(line)) > start + _WIDEST - 6 else text
        caret = "".join("\t" if character == "\t" else " " for character in text[: column - 1]) + "^"
        lines = [f"{self.source.file}:{line}:{place}: {self.code}: {self.message}", f"  {text}", f"  {caret}"]
        # What is compared is shown as such; what may fix it is a hint.
        return "\n".join(
            [*lines, *(f"  {hint if hint.startswith(_SIDES) else f'hint: {hint}'}" for hint in self.hints)]
        )


class RegoError(Exception):
    """Modules that cannot be used, with every reason.

    Attributes:
        diagnostics: at least one, in the order of the text.
    """

    def __init__(self, *diagnostics: Diagnostic) -> None:
        """Take the reasons."""
        super().__init__("\n".join(map(str, diagnostics)))
        self.diagnostics = diagnostics
