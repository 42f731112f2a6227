"""From bytes to values: suffixes, encodings, streams and hostile documents, with places and in bounds."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from policyeng.errors import InputError
from policyeng.parsing.json_text import DEFAULT_MAX_BYTES, MAX_DEPTH
from policyeng.parsing.yaml_text import parse_kubernetes_yaml
from policyeng.sources.text import Text, read_text
from tests.effort import sweep

BOM = b"\xef\xbb\xbf"
LINES = "several JSON documents one after another, as in JSON Lines; make them one list: `jq --slurp . FILE`"
RENDER = "placeholders; render the template first"


def text(content: bytes, file: str = "<stdin>") -> Text:
    """A file that was read."""
    return read_text(content, file, max_bytes=DEFAULT_MAX_BYTES)


def values(content: bytes, file: str = "<stdin>") -> list[object]:
    """The documents of a file."""
    return [document for _, document in text(content, file).documents]


@pytest.mark.parametrize(
    ("file", "content", "value"),
    [
        ("<stdin>", b' {"a": 1}', {"a": 1}),
        ("<stdin>", b"a: 1", {"a": 1}),
        ("<stdin>", b"// why\n[1]", [1]),
        ("noname", b"/* why */ {}", {}),
        ("x.json", b"a: on\nb: [x]\n", {"a": True, "b": ["x"]}),
        ("x.json", b"---\n- a\n", ["a"]),
        ("x.tfstate", b"a: 1", {"a": 1}),
        ("x.yaml", b'{"a": "\\ud83d\\ude00\\/",\n\t"b": 1e3}', {"a": "😀/", "b": 1000.0}),
        ("x.YML", b"{a: 1}", {"a": 1}),
        ("x.yaml", b"[a, 'b']", ["a", "b"]),
        ("x.yaml", b"a: 1\r\nb: |\r\n  c\r\n  d\r\n", {"a": 1, "b": "c\nd\n"}),
        ("x.yaml", b"%YAML 1.1\n---\na: 1\n...\n", {"a": 1}),
    ],
)
def test_content_determines_the_kind_of_a_file(file: str, content: bytes, value: object) -> None:
    """A wrong suffix, or none, hides nothing."""
    assert values(content, file) == [value]


REFUSED = {
    "empty JSON": ("x.json", b"", "x.json: the file is empty; give a JSON or YAML document"),
    "empty YAML": ("x.yaml", b" \n\n", "x.yaml: the file is empty; give a JSON or YAML document"),
    "only a comment": ("x.yaml", b"# x", "x.yaml: the file is empty"),
    "only a separator": ("x.yaml", b"---", "x.yaml: contains only empty documents; give a JSON or YAML document"),
    "only separators": ("<stdin>", b"---\n---\n# x\n---\n", "<stdin>: contains only empty documents"),
    "prose": ("x.json", b"hello world", "x.json:1:1: not valid JSON"),
    "broken YAML in a JSON file": ("x.json", b"a: [", "x.json:1:1: not valid JSON"),
    "an archive": ("plan", b"PK\x03\x04", "plan: not text: a ZIP archive; if it is a Terraform plan, convert it with"),
    "Bicep": (
        "a/main.bicep",
        b"",
        "a/main.bicep: a Bicep file, which cannot be checked directly; compile it with `az bi",
    ),
    "Bicep parameters": ("m.bicepparam", b"", "compile it with `az bicep build-params --file m.bicepparam`"),
    "Terraform": (
        "main.tf",
        b"",
        "main.tf: Terraform configuration, which cannot be checked directly; give its plan: `te",
    ),
    "JSON Lines": ("x.jsonl", b'{"a": 1}\n{"a": 2}\n', f"x.jsonl:2:1: {LINES}"),
    "lists one after another": ("<stdin>", b"[1] [2]", f"<stdin>:1:5: {LINES}"),
    "more text": ("x.json", b"{} x", "x.json:1:4: more text follows the JSON document; keep one document per file"),
    "JSON with a mark": ("x.json", BOM + b"{}", "x.json:1:1: begins with a byte order mark; save it as UTF-8"),
    "YAML with a mark": ("x.yaml", BOM + b"a: 1", "x.yaml:1:1: begins with a byte order mark; save it as UTF-8"),
    "UTF-16": ("x.json", "{}".encode("utf-16"), "x.json:1:1: encoded as UTF-16 or UTF-32; save it as UTF-8"),
    "UTF-16 YAML": ("x.yaml", "a: 1".encode("utf-16-be"), "x.yaml:1:1: encoded as UTF-16 or UTF-32"),
    "UTF-32": ("<stdin>", "{}".encode("utf-32-le"), "<stdin>:1:1: encoded as UTF-16 or UTF-32"),
    "no UTF-8": ("x.yaml", "ä: ä\nö: ".encode() + b"\xe4", "x.yaml:2:4: not valid UTF-8"),
    "a NUL": ("x.yaml", "ä: 1\nb: ö\0".encode(), "x.yaml:2:5: not valid YAML (the character `\\u0000` is not allowed"),
    "an escape": ("x.yaml", b"a: \x1b[0m", "x.yaml:1:4: not valid YAML (the character `\\u001b` is not allowed)"),
    "a tab": ("x.yaml", b"a:\n\tb: 1", "x.yaml:2:1: not valid YAML (found character that cannot start any token)"),
    "a placeholder": (
        "x.yaml",
        b"a:\n  name: {{ name }}\n",
        f"x.yaml:2:9: not plain YAML: it holds `{{{{...}}}}` {RENDER}",
    ),
    "a placeholder as line": (
        "x.yaml",
        b"a: 1\n{{- if .x }}\nb: 2\n{{- end }}",
        "x.yaml:2:1: not plain YAML: it holds",
    ),
    "a statement": ("x.yml", b'a: "{{ x }}"\n{% if x %}\nb: 2', "x.yml:2:1: not plain YAML: it holds `{%...%}` place"),
    "a placeholder first": ("<stdin>", b"{{ x }}: 1", "<stdin>:1:1: not plain JSON: it holds `{{...}}` placeholders"),
    "a placeholder in JSON": ("x.json", b'{"a": "{{ b }}",\n "c": {{ c }}}', "x.json:2:7: not plain JSON: it holds"),
    "a key twice": ("x.yaml", b"a: 1\nb: 1\na: 2", "x.yaml:3:1: /a: duplicate key `a`, first in line 1"),
    "two keys of one meaning": ("x.yaml", b"on: 1\n'true': 2", "duplicate key `true`"),
    "a Python object": ("x.yaml", b"a: !!python/object:os.system x", "the tag `tag:yaml.org,2002:python/object:os.sys"),
    "a Python object by its name": (
        "x.yaml",
        b"%TAG !p! tag:yaml.org,2002:python/\n---\na: !p!name:os.system",
        "the tag `tag:yaml.org,2002:python/name:os.system` is not read",
    ),
    "a number beyond doubles": ("x.yaml", b"a: 1e400", "x.yaml:1:4: /a: the number `1e400` is too large; write it in"),
    "a merge of no mapping": ("x.yaml", b"a: &a 1\nb:\n  <<: *a", "x.yaml:3:3: /b: a merge key (`<<`) over something"),
    "a merge of a list of others": ("x.yaml", b"a:\n  <<: [{b: 1}, 2]", "x.yaml:2:3: /a: a merge key (`<<`) over"),
    "two merge keys": ("x.yaml", b"a: {<<: {b: 1}, <<: {c: 1}}", "duplicate key `<<`"),
    "an alias to a list as key": ("x.yaml", b"a: &a [1]\n*a : 2", "x.yaml:2:1: a key that is not plain text"),
}


@pytest.mark.parametrize(("file", "content", "message"), REFUSED.values(), ids=REFUSED)
def test_a_refusal_states_the_place_and_the_remedy(file: str, content: bytes, message: str) -> None:
    """Columns count characters."""
    with pytest.raises(InputError) as refused:
        text(content, file)

    assert message in str(refused.value)
    assert str(refused.value).startswith(file.partition("/")[0])
    assert refused.value.remedy


@pytest.mark.parametrize(
    ("word", "value"),
    [
        *(
            (word, word)
            for word in ("1:30", "190:20:30", "2026-01-01", "2026-01-01T00:00:00Z", "1.2.3", "0x", "${{x}}")
        ),
        *(("0x1F", 31), ("0b11", 3), ("010", 8), ("1_000", 1000), ("1e3", 1000), ("-.5", -0.5)),
        *(("'{{ x }}'", "{{ x }}"), ("!Ref x", "x"), ("!custom [1]", [1]), ("1" * 19, int("1" * 19))),
    ],
)
def test_words_keep_their_one_meaning(word: str, value: object) -> None:
    """Times stay text, and tags of applications change nothing."""
    assert values(f"a: {word}\n".encode(), "x.yaml") == [{"a": value}]


# ---------------------------------------------------------------- places


def test_places_count_characters_and_lead_into_what_aliases_repeat() -> None:
    """A failing field has the place of its text, and a merged one in the mapping that it comes from."""
    content = "ä: &x {ö: 1, p: [2]}\nb: *x\nc:\n  <<: *x\n  p: 3\n"
    read = text(content.encode(), "x.yaml")

    assert read.documents == (("", {"ä": {"ö": 1, "p": [2]}, "b": {"ö": 1, "p": [2]}, "c": {"p": 3, "ö": 1}}),)
    pointers = ["/ä/p", "/b", "/b/p/0", "/c", "/c/ö", "/c/p", "/c/q", "/b/p/9", "/b/p/x"]
    assert read.places(pointers) == [(1, 14), (2, 1), (1, 18), (3, 1), (1, 8), (5, 3), (3, 1), (1, 14), (1, 14)]


def test_places_in_a_stream_begin_with_the_index_of_the_document() -> None:
    """Empty documents count, and are none."""
    read = text(b"---\n---\na: 1\n---\n- b\n", "x.yaml")

    assert read.documents == (("/1", {"a": 1}), ("/2", ["b"]))
    assert read.places(["/1/a", "/2/0", "/2/0/x", "/7", "/x", ""]) == [(3, 1), (5, 3), (5, 3), (1, 1), (1, 1), (1, 1)]


def test_templates_have_comments_and_strings_of_several_lines() -> None:
    """Everything else keeps its line and column."""
    content = b'// "first"\n{"a": /* "x" */ "b // c",\n"d": "e\n  /* f */\r\ng", "h": 1}\n'
    read = text(content, "azuredeploy.json")

    assert read.documents == (("", {"a": "b // c", "d": "e\n  /* f */\ng", "h": 1}),)
    assert read.places(["/a", "/d", "/h"]) == [(2, 17), (3, 6), (5, 10)]


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"{ // c\n  x}", "2:3"),
        (b'{"a": "1\n2\n3",\n x}', "4:2"),
        (b'{"a": "1\n2\n3", x}', "3:5"),
        (b'{"a": "1\r\n2", /* y\n */ "b" 1}', "3:9"),
        (b'{"a": 1}\n/* never ends', "2:1"),
        (b'{"a": 1, // c\n"a": 2}', "2:1"),
    ],
)
def test_faults_between_comments_and_long_strings_keep_their_place(content: bytes, place: str) -> None:
    """The text that is parsed has fewer lines than the one that the user sees."""
    with pytest.raises(InputError, match=rf"^x\.json:{place}: "):
        text(content, "x.json")


# ---------------------------------------------------------------- merge keys

MAPPINGS = st.dictionaries(st.sampled_from("abc"), st.integers(0, 9) | st.text("xyz", min_size=1), max_size=3)


@st.composite
def merging(draw: st.DrawFn) -> str:
    """A mapping that merges others, which are named, written there, or one in a list."""
    first, second, own = draw(MAPPINGS), draw(MAPPINGS), draw(MAPPINGS)
    sources = ["*one", "*two", str(draw(MAPPINGS)), f"{{<<: *one, z: {draw(st.integers(0, 9))}}}"]
    chosen = draw(st.lists(st.sampled_from(sources), max_size=3))
    merged = f"[{', '.join(chosen)}]" if len(chosen) != 1 or draw(st.booleans()) else chosen[0]
    entries = [f"{key}: {value!r}" for key, value in own.items()]
    entries.insert(draw(st.integers(0, len(entries))), f"<<: {merged}")
    return f"one: &one {first}\ntwo: &two {second}\nall: {{{', '.join(entries)}}}\n"


@given(merging())
def test_merge_keys_mean_the_same_as_in_yaml_1_1(content: str) -> None:
    """PyYAML is the reference; every merged key has a place."""
    [document] = parse_kubernetes_yaml(content.encode(), "x.yaml")

    assert document.value == yaml.safe_load(content)
    assert {f"/all/{key}" for key in yaml.safe_load(content)["all"]} <= set(document.places)


def test_anchors_may_be_at_keys() -> None:
    """They can be used as keys, and as values."""
    assert values(b"&k a: 1\nb: *k\nc: {*k : 2}\n", "x.yaml") == [{"a": 1, "b": "a", "c": {"a": 2}}]


# ---------------------------------------------------------------- bounds

HOSTILE = {
    "a bomb of aliases": 'b"a0: &a0 [x]\\n" + b"".join(b"a%d: &a%d [%s]\\n" % (i, i, b",".join([b"*a%d" % (i-1)] * 10))'
    " for i in range(1, 30))",
    "a bomb of merge keys": 'b"a0: &a0 {x: 1}\\n" + b"".join(b"a%d: &a%d {<<: [%s], k%d: 1}\\n" % (i, i, b",".join('
    '[b"*a%d" % (i-1)] * 10), i) for i in range(1, 30))',
    "a long text repeated": 'b"a: &a " + b"x" * 1_000_000 + b"\\nb: [" + b"*a," * 100_000 + b"]"',
    "depth by aliases": 'b"a0: &a0 x\\n" + b"".join(b"a%d: &a%d [*a%d]\\n" % (i, i, i-1) for i in range(1, 20_000))',
    "open brackets": 'b"[" * 3_000_000',
    "open brackets after a key": 'b"a: " + b"[" * 3_000_000',
    "dashes": 'b"- " * 1_000_000',
    "long keys above many": 'b"".join(b" " * i + b"k" * 900 + b":\\n" for i in range(100))'
    ' + b"".join(b" " * 100 + b"a%d: 1\\n" % i for i in range(20_000))',
    "a long word": 'b"a: " + b"x" * 50_000_000',
    "a long number": 'b"a: " + b"9" * 5_000_000',
    "a long number in JSON": 'b"[" + b"9" * 5_000_000 + b"]"',
    "comments that never end": 'b"{" + b"/*" * 1_000_000',
    "a string that never ends": 'b\'{"\' + b"a\\n" * 1_000_000',
    "quotes": 'b"{" + b\'"\' * 1_000_001',
    "braces": 'b"a: " + b"{{" * 1_000_000',
    "braces on many lines": 'b"a: [\\n" + b"{{ x\\n" * 300_000',
    "many documents": 'b"---\\na: 1\\n" * 300_000',
    "many directives": 'b"".join(b"%%TAG !a%d! tag:x\\n" % i for i in range(100_000)) + b"---\\na: 1"',
    "many values": 'b"a: [" + b"x," * 1_100_000 + b"]"',
}
_BOUNDED = """
import sys, time
from pathlib import Path
from policyeng.sources import read_inputs
content = eval(sys.argv[1])
before = time.process_time()
read = read_inputs(["-"], stdin=content)
assert read.problems and not read.snapshot.resources
# Not `ru_maxrss`, which starts at the size of the process that started this one.
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(time.process_time() - before, int(peak.split()[1]) / 1024)
"""


@pytest.mark.parametrize("name", sweep(HOSTILE, 5))
def test_hostile_documents_stay_in_bounds(name: str) -> None:
    """Some megabytes that would take hours or gigabytes take seconds, and less than 500 MB."""
    ran = subprocess.run(
        [sys.executable, "-c", _BOUNDED, HOSTILE[name]], capture_output=True, text=True, timeout=600, check=True
    )
    seconds, megabytes = map(float, ran.stdout.split())
    assert seconds < 10
    assert megabytes < 500


def test_depth_counts_what_aliases_bring() -> None:
    """A value is never deeper than a document may be, however it is put together."""
    half = MAX_DEPTH // 2
    deep = f"a: &a {'[' * half}{']' * half}\nb: {'[' * (half - 1)}*a{']' * (half - 1)}\n"
    [document] = parse_kubernetes_yaml(deep.encode(), "x.yaml")
    value, depth = document.value, 0
    while value:
        value, depth = (value["b"] if isinstance(value, dict) else value[0]), depth + 1  # type: ignore[index]  # lists
    assert depth == MAX_DEPTH - 1

    with pytest.raises(InputError, match=f"nested deeper than {MAX_DEPTH} levels"):
        parse_kubernetes_yaml(deep.replace("*a", "[*a]").encode(), "x.yaml")


ODD = st.text(alphabet="ab1:-[]{}&*!|>'\"#?,% \t\n~.0<x$/\\é\ufeff\u2028\0")
NAMES = st.sampled_from(["x.json", "x.yaml", "x.tf", "x", "<stdin>"])


@given(st.binary() | ODD.map(str.encode) | st.builds(lambda odd: odd.encode("utf-16"), ODD), NAMES)
def test_any_bytes_are_read_or_refused(content: bytes, file: str) -> None:
    """Nothing but our own error comes out, and every place is one of the text."""
    with suppress(InputError):
        read = text(content, file)
        lines = content.decode().count("\n") + content.decode().count("\r") + 1
        assert all(1 <= line <= lines + content.decode().count("\u2028") for line, _ in read.places(["", "/0", "/a"]))
