"""Escapes: what cannot be seen is written out, what would be obeyed is broken up."""

from __future__ import annotations

import html
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyeng.report.escaping import compact, markdown_code, markdown_text, visible
from tests.report_samples import HOSTILE, json_values, laws


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain café 漢字 🙂", "plain café 漢字 🙂"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\x1b[31m", "\\u001b[31m"),
        ("\x7f\x85", "\\u007f\\u0085"),
        ("a\u202eb\u2066c", "a\\u202eb\\u2066c"),
        ("a\u200bb\ufeff", "a\\u200bb\\ufeff"),
        ("a\u2028b\u00a0c", "a\\u2028b\\u00a0c"),
        ("\U000e0041", "\\udb40\\udc41"),
        ("\ud800", "\\ud800"),
        ("x ##vso[task.complete]", "x \\u0023#vso[task.complete]"),
        ("##[error]", "\\u0023#[error]"),
        ("# ## #[", "# ## #["),
        ("::error::x", "\\u003a:error::x"),
        ("a ::set-env::x", "a \\u003a:set-env::x"),
        ("a::b ::1", "a::b ::1"),
    ],
)
def test_visible(text: str, shown: str) -> None:
    """Unprintable characters become JSON escapes and commands of build agents are broken; the rest stays."""
    assert visible(text) == shown


@laws
@given(st.text() | st.just(HOSTILE))
def test_visible_is_printable_and_idempotent(text: str) -> None:
    """All that comes out is printable, and a second pass changes nothing."""
    shown = visible(text)
    assert shown.isprintable()
    assert visible(shown) == shown


@laws
@given(json_values)
def test_compact_is_one_line_of_json_with_the_same_value(value: object) -> None:
    """Escaping never changes a JSON value."""
    shown = compact(value)
    assert shown.isprintable()
    assert json.loads(shown) == value


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "null"), (["a", 1], '["a", 1]'), ({"a": "\x1b"}, '{"a": "\\u001b"}'), (float("nan"), '"NaN"')],
)
def test_compact(value: object, shown: str) -> None:
    """Values read as JSON, also the numbers that JSON lacks."""
    assert compact(value) == shown


@laws
@given(st.text() | st.just(HOSTILE))
def test_markdown_keeps_the_text_and_has_no_markup(text: str) -> None:
    """Decoding the references gives the visible text back; no character with a meaning in Markdown is left."""
    shown = markdown_text(text)
    assert html.unescape(shown).replace("\u200b", "") == visible(text)
    plain = shown.replace("&#8203;", "")
    assert not set("\\`*_{}[]<>|~$@") & set(plain)
    assert "://" not in plain
    assert "www." not in plain.lower()
    assert html.unescape(markdown_code(text)) == f"<code>{visible(text)}</code>"


def test_markdown_mentions_no_one() -> None:
    """`@name` and `#1` are parted by a zero-width space, so that the host neither notifies nor links."""
    assert markdown_text("@octocat #12") == "&#64;&#8203;octocat &#35;&#8203;12"
