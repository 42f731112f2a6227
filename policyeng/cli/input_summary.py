"""Lines about the inputs of `check`: formats, files read, and files skipped with the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from policyeng.report.phrases import count
from policyeng.sources import FORMATS, ReadDocument, Skipped


def format_lines() -> Iterator[str]:
    """Yield one line per input format: its name for `--from` and a summary."""
    width = max(map(len, FORMATS))
    yield from (f"{name:<{width}}  {each.SUMMARY}" for name, each in FORMATS.items())


def reading_lines(every: Sequence[ReadDocument], skipped: Sequence[Skipped], *, show_skipped: bool) -> Iterator[str]:
    """Yield a summary if files were skipped or have several formats, and one line per skipped file on request."""
    formats = Counter(read.format for read in every)
    if skipped or len(formats) > 1:
        what = ", ".join(f"{number} {name}" for name, number in sorted(formats.items())) or "nothing"
        files = len({read.file for read in every})
        folders = sum(left.file.endswith("/") for left in skipped)
        parts = [
            count(number, noun) for number, noun in ((len(skipped) - folders, "file"), (folders, "folder")) if number
        ]
        left = f"; {' and '.join(parts)} skipped" if skipped else ""
        hint = " (--show-skipped lists them)" if skipped and not show_skipped else ""
        yield f"policyeng: read {count(files, 'file')} ({what}){left}{hint}"
    if show_skipped:
        yield from (f"policyeng: skipped {left.file}: {left.reason}" for left in skipped)
