"""Mutants of real files and of our own samples: changed in their values or in their bytes, and what must hold for each.

`python -m tests.fuzzing --mutants N --seed S [--folder F]` tries more of them by hand, `--replay FILE` one again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

import yaml

from policyeng import evaluate
from policyeng.bundle import Bundle, load_bundle
from policyeng.errors import PolicyengError
from policyeng.models import Outcome
from policyeng.parsing.json_text import DEFAULT_MAX_BYTES
from policyeng.sources import FORMATS, read_inputs
from policyeng.sources.arm_resource import service_made
from policyeng.sources.discovery import as_utf8
from policyeng.sources.parsed import ParsedDocument, Placed, Surroundings
from policyeng.sources.text import read_text
from tests.real_files import AS_OF, FOLDERS, REAL, ROOT, files_in

#: Larger files take longer and contain nothing that smaller ones do not.
MAX_SEED_BYTES = 16 * 1024
#: Seconds of processor time for all readings of one mutant.
MAX_SECONDS = 2.0
#: The folder of our own samples, next to those of real files.
SAMPLES = "samples"

#: What may be in a resource though it cannot be read: it has to have an id and a name, even if all of it is unknown
#: (the empty pointer), and a role's scopes state where it is. What the service makes a file may state, and is ignored.
KEPT = frozenset({"", "/id", "/name", "/properties/assignableScopes"})

_SUFFIXES = (".json", ".yaml", ".yml")
_SCOPE = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg"
_PLACES = (
    Surroundings(),
    Surroundings(
        file="x", scope=_SCOPE, workspace=f"{_SCOPE}/providers/Microsoft.MachineLearningServices/workspaces/w",
        parameters={"name": "w", "location": [1], "tags": None},
    ),
)  # fmt: skip
ODD_SCALARS: tuple[object, ...] = (
    *(None, True, False, 0, -1, 1.5, 2**53, 2**63, -(2**63), 1e308, 1e-320, "", " ", "0", "-1", "true", "null", "PT1M"),
    *("PT99999999999999999999S", "P-1D", "string", "{x}", "<x>", "\x00", "\u202eabc", "é", "💥", "x" * 5000, "/", "//"),
    *(
        "[parameters('x')]",
        "[[",
        "[",
        "[variables('v')",
        "[concat(",
        "${{ x }}",
        "${var.x}",
        "{{ x }}",
        "../..",
        "%s%n",
    ),
    *(
        "9" * 5000,
        f"[format('{{{'9' * 5000}}}', 'a')]",
        f"[add({'9' * 5000}, 1)]",
        "--5",
        "²",
        "٣",
        "1.0",
        "+1",
        "0x10",
    ),
    *("[reference(resourceId('a/b', 'c')).d]", "[" + "if(" * 300, "[" + "concat('a'," * 60 + "'b'" + ")" * 60 + "]"),
    *("[variables('a')]", "[copyIndex()]", "[range(0, 999999999)]", "[parameters('x')[0]['y'].z]", "[format('{9}')]"),
    *("/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces", "/providers//x//"),
    *("/subscriptions//providers/Microsoft.MachineLearningServices/workspaces/w/computes/c/x/y/z", "azureml:x@latest"),
    *([], {}, [None], {"": None}, [[]], {"id": {"id": []}}, {"²": True, "9" * 5000: 1, "-1": 2}),
)
_KEYS = (
    "id",
    "type",
    "name",
    "properties",
    "resources",
    "value",
    "copy",
    "kind",
    "apiVersion",
    "$schema",
    "",
    "a/b~c",
    "²",
    "0",
)


class Seed(NamedTuple):
    """A file that mutants are made of: its name, its bytes, and the JSON values in it."""

    name: str
    content: bytes
    documents: tuple[object, ...]


@cache
def seeds(folder: str) -> tuple[Seed, ...]:
    """The files of one folder that are not too large; none when the real files are missing."""
    root = ROOT / SAMPLES if folder == SAMPLES else REAL / folder
    found = [path for path in files_in(root) if path.suffix in _SUFFIXES and path.stat().st_size <= MAX_SEED_BYTES]
    return tuple(seed for path in found if (seed := _seed(path)).content.strip())


def _seed(path: Path) -> Seed:
    content = path.read_bytes()
    try:
        documents = read_text(content, path.name, max_bytes=DEFAULT_MAX_BYTES).documents
    except PolicyengError:
        documents = ()
    return Seed(path.name, content, tuple(document for _, document in documents))


@cache
def every_document() -> tuple[object, ...]:
    """The values of all folders, from which parts are put into others."""
    return tuple(document for folder in (*FOLDERS, SAMPLES) for seed in seeds(folder) for document in seed.documents)


# ---------------------------------------------------------------- values

Place = tuple[list[object] | dict[str, object], int | str]
Mutator = Callable[[Random, list[Place]], None]


def _places(value: object, limit: int = 4000) -> list[Place]:
    """Every entry of the lists and objects in a value, as its container and its key."""
    found: list[Place] = []
    waiting = [value]
    while waiting and len(found) < limit:
        each = waiting.pop()
        entries = each.items() if isinstance(each, dict) else enumerate(each) if isinstance(each, list) else ()
        for key, inner in entries:
            found.append((each, key))  # type: ignore[arg-type]  # what has entries is a list or an object
            waiting.append(inner)
    return found


def _get(place: Place) -> object:
    return place[0][place[1]]  # type: ignore[index]  # the key is one of its container


def _put(place: Place, value: object) -> None:
    place[0][place[1]] = value  # type: ignore[index]  # the same


def _copied(value: object) -> object:
    return json.loads(json.dumps(value))


def _delete(random: Random, places: list[Place]) -> None:
    container, key = random.choice(places)
    del container[key]  # type: ignore[arg-type]  # the same


def _odd(random: Random, places: list[Place]) -> None:
    _put(random.choice(places), _copied(random.choice(ODD_SCALARS)))


def _retype(random: Random, places: list[Place]) -> None:
    place = random.choice(places)
    value = _get(place)
    others: list[object] = [[value], {"value": value}, str(value), json.dumps(value), None, not value]
    if isinstance(value, str):
        others += [list(value[:9]), len(value), {value: value}]
    if isinstance(value, list):
        others.append({str(index): inner for index, inner in enumerate(value)})
        others.append({f"k{index}": _copied(value) for index in range(3)})
    if isinstance(value, dict):
        others += [list(value.values()), [*value.items()]]
    _put(place, random.choice(others))


def _rename(random: Random, places: list[Place]) -> None:
    container, key = random.choice(places)
    if isinstance(container, dict) and isinstance(key, str):
        snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)
        head, *rest = key.split("_")
        renamed = [key.upper(), key.lower(), key.capitalize(), snake, head + "".join(map(str.capitalize, rest))]
        container[random.choice([*renamed, f" {key}", f"{key}s", *_KEYS])] = container.pop(key)


def _double(random: Random, places: list[Place]) -> None:
    container, key = place = random.choice(places)
    copy = _copied(_get(place))
    if isinstance(container, list):
        container.insert(random.randint(0, len(container)), copy)
    else:
        container[random.choice([f"{key}2", *_KEYS])] = copy


def _nest(random: Random, places: list[Place]) -> None:
    place = random.choice(places)
    outer = _get(place)
    for _ in range(random.choice([1, 30, 100, 200])):
        outer = {str(place[1]): outer} if random.choice([True, False]) else [outer]
    _put(place, outer)


def _itself(random: Random, places: list[Place]) -> None:
    place = random.choice(places)
    inner = _copied(_get(random.choice(places)))
    if len(json.dumps(inner)) < MAX_SEED_BYTES:
        _put(place, inner)


def _splice(random: Random, places: list[Place]) -> None:
    theirs = _places(random.choice(every_document()))
    if theirs:
        place = random.choice(theirs)
        container, key = random.choice(places)
        _put((container, place[1]) if isinstance(container, dict) else (container, key), _copied(_get(place)))


def _long(random: Random, places: list[Place]) -> None:
    place = random.choice(places)
    text = str(_get(place))[:100] or "x"
    _put(place, (text * (20_000 // len(text)))[: random.choice([300, 20_000])])


def _identity(random: Random, places: list[Place]) -> None:
    ids = [place for place in places if isinstance(value := _get(place), str) and "/" in value]
    place = random.choice(ids or places)
    segments = str(_get(place)).split("/")
    index = random.randrange(len(segments))
    segments[index : index + random.randint(0, 1)] = random.choice(
        [[], [""], ["providers"], ["x", "y"], ["{x}"], ["é"]]
    )
    _put(place, "/".join(segments))


VALUE_MUTATORS: tuple[Mutator, ...] = (
    *(_delete, _odd, _odd, _retype, _rename, _double, _nest, _itself, _splice, _long, _identity),
)


def changed_value(random: Random, seed: Seed) -> bytes:
    """One of the documents of a file with one to three changes, as JSON or as YAML."""
    document = _copied(random.choice(seed.documents))
    for _ in range(random.randint(1, 3)):
        places = _places([document])
        random.choice(VALUE_MUTATORS)(random, places)
        document = places[0][0][0] if places[0][0] else document  # type: ignore[index]  # the list around it
    return _written(document, as_yaml=random.randint(0, 4) == 0)


def _written(document: object, *, as_yaml: bool) -> bytes:
    """A value as text; what is too deep for the writer of YAML as JSON."""
    with suppress(RecursionError):
        if as_yaml:
            return bytes(yaml.dump(document, Dumper=yaml.CSafeDumper, allow_unicode=True, encoding="utf-8"))
    return json.dumps(document).encode()


# ---------------------------------------------------------------- bytes

_TOKENS = (
    *(b"\xef\xbb\xbf", b"\x00", b"\t", b"\r\n", b"\xff", b"!!python/object:os.system ", b"!Ref ", b"&a ", b"*a "),
    *(b"<<: *a\n", b"---\n", b"...\n", b"{{ x }}", b"{% if x %}", b"'", b'"', b"#", b"//", b"/* ", b"1e400", b"0x1F"),
    *(b"1:30", b",,", b"[[", b"]", b"{", b"}", b": ", b"? ", b"- ", b"| ", b">\n", b"%YAML 1.2\n", b"\xc2\x85"),
    *(b"\xe2\x80\xa8", b"\\ud800"),
)


def changed_bytes(random: Random, seed: Seed) -> bytes:
    """The bytes of a file with one to three changes."""
    content = seed.content
    for _ in range(random.randint(1, 3)):
        start = random.randint(0, len(content))
        end = min(len(content), start + random.choice([1, 8, 80, 800]))
        way = random.randint(0, 6)
        if way == 0:
            content = content[:start]
        elif way == 1:
            content = content[:start] + content[end:]
        elif way == 2:
            content = content[:end] + content[start:]
        elif way == 3 and start < len(content):
            content = content[:start] + bytes([content[start] ^ (1 << random.randint(0, 7))]) + content[start + 1 :]
        elif way == 4 and random.randint(0, 5) == 0:
            content = content.decode("utf-8", "replace").encode(random.choice(["utf-16", "utf-16-le", "utf-32-be"]))
        else:
            content = content[:start] + random.choice(_TOKENS) + content[start:]
    return content


def mutant(random: Random, folder: str) -> tuple[str, bytes]:
    """A changed file of a folder, with the name of the file that it was."""
    seed = random.choice(seeds(folder))
    change = changed_bytes if not seed.documents or random.randint(0, 3) == 0 else changed_value
    return seed.name, change(random, seed)


# ---------------------------------------------------------------- what must hold


def fault(content: bytes, bundle: Bundle | None = None) -> str:
    """What is wrong with how a document is read and, with a bundle, evaluated; empty when nothing is."""
    began = time.process_time()
    try:
        message = _read(content) or (_evaluated(content, bundle) if bundle else "")
    except PolicyengError as error:
        return f"raised in place of a problem: {error!r}"
    except Exception as error:  # that is what is looked for
        return f"raised {type(error).__name__}: {error}"
    seconds = time.process_time() - began
    return message or (f"took {seconds:.1f} seconds" if seconds > MAX_SECONDS else "")


def _read(content: bytes) -> str:
    """Read by detection, with the whole way insisted on one format, and by every reader at each place."""
    first = read_inputs(["-"], stdin=content)
    names = list(FORMATS)
    read_inputs(["-"], stdin=content, from_format=names[len(content) % len(names)])
    if any(not problem.message or not problem.place.startswith("<stdin>") for problem in first.problems):
        return "a problem without a place or a message"
    try:
        documents = read_text(as_utf8(content), "<stdin>", max_bytes=DEFAULT_MAX_BYTES).documents
    except PolicyengError:
        return "" if first.problems else "neither read nor refused"
    for _, document in documents[:3]:
        before = json.dumps(document)
        for name, each in FORMATS.items():
            each.detect(document)
            for around in _PLACES:
                if message := unsound(each.read(document, around), document):
                    return f"{name}: {message}"
        if json.dumps(document) != before:
            return "a reader changed the document"
    return ""


def unsound(reading: ParsedDocument, document: object) -> str:
    """What is wrong with a reading, if anything: only a list without entries comes to nothing without a word."""
    content = reading.resources or reading.stated or reading.refusals or reading.nothing or reading.incomplete
    if not content and "[]" not in json.dumps(document):
        return "nothing read and nothing reported"
    return next((message for placed in reading.resources if (message := _unsound(placed))), "")


def _unsound(placed: Placed) -> str:
    identity, kind = placed.resource.get("id"), placed.resource.get("type")
    if not (isinstance(identity, str) and identity.startswith("/") and isinstance(kind, str) and "/" in kind):
        return f"a resource with id {identity!r} and type {kind!r}"
    if any(pointer and not pointer.startswith("/") for pointer in (placed.pointer, *placed.fields.values())):
        return f"a pointer that is none at {identity!r}"
    for pointer in placed.unreadable.keys() - KEPT - service_made(kind).keys():
        if _at(placed.resource, pointer) is not None:
            return f"{pointer} is unreadable and there, at {identity!r}"
    return ""


def _at(value: object, pointer: str) -> object:
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _evaluated(content: bytes, bundle: Bundle) -> str:
    snapshot = read_inputs(["-"], stdin=content).snapshot
    for finding in evaluate(bundle, snapshot, as_of=AS_OF).findings:
        if finding.outcome is Outcome.ERROR:
            return f"{finding.policy} failed: {finding.unknowns}"
    return ""


def kept(content: bytes) -> Path:
    """Where a mutant is written to, so that it can be tried again."""
    path = Path(tempfile.gettempdir()) / f"policyeng-mutant-{hashlib.sha256(content).hexdigest()[:12]}"
    path.write_bytes(content)
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    """Try mutants; 1 when one of them shows a fault."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=main.__doc__)
    parser.add_argument("--mutants", type=int, default=2000, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="where chance begins")
    parser.add_argument("--folder", choices=[*FOLDERS, SAMPLES], help="of the files of one folder only")
    parser.add_argument("--replay", type=Path, help="a mutant that was written down")
    chosen = parser.parse_args(arguments)
    bundle = load_bundle()
    if chosen.replay:
        message = fault(chosen.replay.read_bytes(), bundle)
        sys.stdout.write(f"{message or 'no fault'}\n")
        return int(bool(message))
    random = Random(chosen.seed)  # noqa: S311  # chance that is to be the same every time
    folders = [folder for folder in (*FOLDERS, SAMPLES) if seeds(folder) and chosen.folder in (None, folder)]
    faults: dict[str, Path] = {}
    tried: set[bytes] = set()
    while len(tried) < chosen.mutants:
        name, content = mutant(random, random.choice(folders))
        if content not in tried and (message := fault(content, bundle if len(tried) % 20 == 0 else None)):
            faults.setdefault(message[:80], kept(content))
            sys.stdout.write(f"{name}: {message[:300]}: {kept(content)}\n")
        tried.add(content)
    sys.stdout.write(f"{len(tried)} mutants, {len(faults)} kinds of faults\n")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
