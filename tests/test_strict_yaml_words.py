"""Plain words of YAML in both dialects; the Kubernetes ones as the real Conftest reads them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from policyeng.errors import InputError
from policyeng.parsing.yaml_text import core, parse_kubernetes_yaml
from tests.conftest_binary import require_conftest

WORDS = [
    *("yes", "No", "ON", "off", "y", "N", "true", "False", "null", "~", "yEs", "t", "abc"),
    *("0644", "-0644", "0o17", "0b101", "0x1F", "-0x10", "1_000", "1__0", "_1", "12", "+12", "-0", "089", "08"),
    *("1e3", "12e03", ".5", "1.", "1.5e-3", "2020-01-01", "1:30", "1.2.3", "0b", "0x", "1_", "+_1"),
]


def test_words_mean_what_they_mean_to_conftest(tmp_path: Path) -> None:
    """Each as a value and as a key of its own document."""
    as_keys = {word: "" if word in ("null", "~") else f"\nk:\n  {word}: 1" for word in WORDS}  # no key is null
    text = "\n---\n".join(f"v: {word}{as_keys[word]}" for word in WORDS)
    file = tmp_path / "words.yaml"
    file.write_text(text, encoding="utf-8")
    ran = subprocess.run(
        [str(require_conftest()), "parse", str(file)], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    theirs = json.loads(ran.stdout)
    ours = [document.value for document in parse_kubernetes_yaml(text.encode(), "words.yaml")]

    assert [(word, one) for word, one in zip(WORDS, ours, strict=True)] == list(zip(WORDS, theirs, strict=True))


@pytest.mark.parametrize("word", ["yes", "on", "y", "1_000", "1:30"])
def test_our_own_documents_read_yaml_1_2(word: str) -> None:
    """There, such words are text."""
    assert core(word) == word


@pytest.mark.parametrize(
    ("text", "message"),
    [("~: 1", "a key that is null"), ("on: 1\nyes: 2", "duplicate key"), ("a: .nan", "NaN"), ("a: !!binary x", "tag")],
)
def test_the_strict_refusals_stay(text: str, message: str) -> None:
    """Another dialect, and no less strict."""
    with pytest.raises(InputError, match=message):
        parse_kubernetes_yaml(text.encode(), "x")


def test_documents_have_lines_and_anchors_of_their_own() -> None:
    """An anchor of one document is unknown to the next; tags of an application's own change nothing."""
    first, second = parse_kubernetes_yaml(b"a: !Ref x\n---\n\nb: !Sub [1]\n", "x")
    assert (first.value, first.places[""][0]) == ({"a": "x"}, 1)
    assert (second.value, second.places[""][0]) == ({"b": [1]}, 4)
    with pytest.raises(InputError, match="refers to nothing"):
        parse_kubernetes_yaml(b"a: &x 1\n---\nb: *x\n", "x")
