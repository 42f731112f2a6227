"""What `check` says of its inputs: what it reads, which files it read, which it skipped, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from policyeng.report.phrases import count
from policyeng.sources import FORMATS, ReadDocument, Skipped


def format_lines() -> Iterator[str]:
    """One line on each input format: the name that `--from` takes, and what it looks like."""
    width = max(map(len, FORMATS))
    yield from (f"{name:<{width}}  {each.SUMMARY}" for name, each in FORMATS.items())


def reading_lines(every: Sequence[ReadDocument], skipped: Sequence[Skipped], *, show_skipped: bool) -> Iterator[str]:
    """One line on the inputs where files were skipped or several formats met, and one for each skipped file."""
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
