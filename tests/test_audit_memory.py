"""What an audit holds in memory does not grow with the number of its parts, beside some kilobytes for each."""

from __future__ import annotations

from pathlib import Path

from benchmarks import scale
from benchmarks.estates import fleet


def test_parts_go_by_one_after_the_other(tmp_path: Path) -> None:
    """Ten times as many parts take about as much; held together they would take 60 MB more."""
    sizes = {}
    for parts in (30, 300):
        folder = tmp_path / str(parts)
        folder.mkdir()
        for name, content in fleet(parts, 10):
            (folder / name).write_bytes(content)
        run = scale.audited(folder, jobs=1)
        assert run.parts == parts
        sizes[parts] = run.rss_mb

    assert sizes[300] < sizes[30] + 25
