"""Operations of strings."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import product

from policyeng.rego.budget import charge, charged
from policyeng.rego.builtins.formatting import format_text
from policyeng.rego.builtins.registry import (
    BuiltinError,
    OperandError,
    UnsupportedError,
    builtin,
    check_array,
    check_integer,
    check_number,
    check_object,
    check_string,
    wrong_element,
    wrong_type,
)
from policyeng.rego.numbers import round_to_mantissa, to_fraction
from policyeng.rego.values import Value, is_number, members, to_text, type_name

#: Python takes the separators U+001C to U+001F for spaces, Go does not.
_SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_BASES = {2: "b", 8: "o", 10: "d", 16: "x"}
#: Results up to this size are not charged for.
_SMALL = 4096


@builtin("lower")
def lower(text: Value) -> Value:
    """Return a string in lower case."""
    if type(text) is not str:
        check_string(1, text)
    # Go maps each character to one, without regard to what is around it.
    return charged(text.lower() if text.isascii() else "".join(map(_lower_char, text)))


def _lower_char(char: str) -> str:
    found = char.lower()
    return found if len(found) == 1 else found[0]


@builtin("upper")
def upper(text: Value) -> Value:
    """Return a string in upper case."""
    if type(text) is not str:
        check_string(1, text)
    return charged(text.upper() if text.isascii() else "".join(map(_upper_char, text)))


def _upper_char(char: str) -> str:
    found = char.upper()
    if len(found) > 1:
        found = char.title()
    return found if len(found) == 1 else char


@builtin("startswith")
def check_start(text: Value, prefix: Value) -> Value:
    """Check that a string starts with another."""
    if type(text) is str and type(prefix) is str:
        return text.startswith(prefix)
    return check_string(1, text).startswith(check_string(2, prefix))


@builtin("endswith")
def check_end(text: Value, suffix: Value) -> Value:
    """Check that a string ends with another."""
    if type(text) is str and type(suffix) is str:
        return text.endswith(suffix)
    return check_string(1, text).endswith(check_string(2, suffix))


@builtin("contains")
def check_contained(text: Value, part: Value) -> Value:
    """Check that a string contains another."""
    if type(text) is str and type(part) is str:
        return part in text
    return check_string(2, part) in check_string(1, text)


@builtin("strings.any_prefix_match")
def check_any_start(texts: Value, prefixes: Value) -> Value:
    """Check that a string starts with another, for any of some strings and any of others."""
    found = _list_affixes(1, texts)
    return _match_any(found, _list_affixes(2, prefixes))


@builtin("strings.any_suffix_match")
def check_any_end(texts: Value, suffixes: Value) -> Value:
    """Check that a string ends with another, for any of some strings and any of others."""
    found = _list_affixes(1, texts)
    return _match_any([one[::-1] for one in found], [one[::-1] for one in _list_affixes(2, suffixes)])


def _list_affixes(position: int, texts: Value) -> list[str]:
    if type(texts) is str:
        return [texts]
    if type(texts) is not list and type(texts) is not set:
        raise wrong_type(position, texts, "string", "set", "array")
    return _list_strings(position, texts)


def _list_strings(position: int, collection: list[Value] | set[Value]) -> list[str]:
    if set(map(type, collection)) <= {str}:
        return list(collection)
    wrong = next(one for one in _list_members(collection) if type(one) is not str)
    raise wrong_element(position, collection, wrong, "string")


def _list_members(collection: list[Value] | set[Value]) -> list[Value]:
    return collection if type(collection) is list else members(collection)  # type: ignore[arg-type]  # it is a set


def _match_any(texts: list[str], prefixes: list[str]) -> bool:
    if len(texts) == 1:
        return texts[0].startswith(tuple(prefixes))
    # What starts with a prefix comes in a row after it.
    texts = sorted(texts)
    places = ((bisect_left(texts, prefix), prefix) for prefix in prefixes)
    return any(place < len(texts) and texts[place].startswith(prefix) for place, prefix in places)


@builtin("format_int")
def format_integer(number: Value, base: Value) -> Value:
    """Write a number in a base, without its fraction."""
    check_number(1, number)
    check_number(2, base)
    style = _BASES.get(base) if type(base) is int else None
    if style is None:
        raise OperandError("operand 2 must be one of {2, 8, 10, 16}")
    whole = number if type(number) is int else int(round_to_mantissa(to_fraction(number)))
    return format(whole, style)


@builtin("concat")
def join(separator: Value, parts: Value) -> Value:
    """Join strings with another between them."""
    if type(separator) is not str:
        check_string(1, separator)
    if type(parts) is list:
        found = parts
    elif type(parts) is set:
        found = sorted(_list_strings(2, parts))
    else:
        raise wrong_type(2, parts, "set", "array")
    try:
        size = sum(map(len, found)) + len(separator) * len(found)
        if size > _SMALL:
            charge(size)
        return separator.join(found)
    except TypeError:
        wrong = next(one for one in found if type(one) is not str)
        raise wrong_element(2, parts, wrong, "string") from None


@builtin("indexof")
def find_index(text: Value, part: Value) -> Value:
    """Return where a string is first in another, -1 where it is not."""
    return check_string(1, text).find(_check_search(part))


@builtin("indexof_n")
def find_indices(text: Value, part: Value) -> Value:
    """List where a string is in another; the places may overlap."""
    check_string(1, text)
    _check_search(part)
    found = []
    place = text.find(part)
    while place >= 0:
        # Each comparison takes time, too.
        charge(len(part))
        found.append(place)
        place = text.find(part, place + 1)
    return found


def _check_search(part: Value) -> str:
    if not check_string(2, part):
        raise BuiltinError("empty search character")
    return str(part)


@builtin("substring")
def take_substring(text: Value, offset: Value, length: Value) -> Value:
    """Return characters of a string from an offset; a negative length means all of them."""
    check_string(1, text)
    start, size = check_integer(2, offset), check_integer(3, length)
    if start < 0:
        raise BuiltinError("negative offset")
    return charged(text[start:] if size < 0 else text[start : start + size])


@builtin("strings.count")
def count_matches(text: Value, part: Value) -> Value:
    """Count how often a string is in another."""
    return check_string(1, text).count(check_string(2, part))


@builtin("split")
def split(text: Value, separator: Value) -> Value:
    """Split a string; an empty separator splits it into characters."""
    if type(text) is not str or type(separator) is not str:
        check_string(1, text)
        check_string(2, separator)
    return charged(text.split(separator) if separator else list(text))


@builtin("strings.split_n")
def split_some(text: Value, separator: Value, count: Value) -> Value:
    """Split a string and return the first parts, or the last ones for a negative count."""
    check_string(1, text)
    check_string(2, separator)
    wanted = check_integer(3, count)
    if wanted < 0:
        return split(text, separator)[wanted:]
    return charged(text.split(separator, wanted)[:wanted] if separator else list(text[:wanted]))


@builtin("replace")
def replace(text: Value, old: Value, new: Value) -> Value:
    """Replace a string in another."""
    if type(text) is not str or type(old) is not str or type(new) is not str:
        check_string(1, text)
        check_string(2, old)
        check_string(3, new)
    if not old:
        _refuse_to_split_characters(text)
    if len(text) * len(new) > _SMALL:
        charge(text.count(old) * len(new))
    return text.replace(old, new)


@builtin("strings.replace_n")
def replace_all(patterns: Value, text: Value) -> Value:
    """Replace strings in another by the values of an object, in one pass."""
    check_object(1, patterns)
    check_string(2, text)
    if not set(map(type, patterns)) <= {str}:
        raise OperandError("operand 1 non-string key found in pattern object")
    if not set(map(type, patterns.values())) <= {str}:
        raise OperandError("operand 1 non-string value found in pattern object")
    # At each place the first key in their order counts.
    keys = sorted(patterns)
    if not keys:
        return text
    if not keys[0]:
        return _replace_with_empty(patterns, keys, text)

    import re2

    def replace_one(found: Value) -> str:
        new = str(patterns[found.group()])
        charge(len(new))
        return new

    try:
        return str(_compile(tuple(keys)).sub(replace_one, text))
    except re2.error:
        raise UnsupportedError("strings.replace_n: the patterns are too large") from None


@lru_cache(maxsize=64)
def _compile(keys: tuple[str, ...]) -> Value:
    import re2

    return re2.compile("|".join(map(re2.escape, keys)))


def _replace_with_empty(patterns: dict[str, str], keys: list[str], text: str) -> str:
    _refuse_to_split_characters(text)
    others, parts, place, was_empty = keys[1:], [], 0, False
    while place <= len(text):
        charge(len(keys))
        # The empty key counts first, but not twice at a place.
        found = next((key for key in others if text.startswith(key, place)), None) if was_empty else ""
        was_empty = found == ""
        if found is None:
            parts.append(text[place : place + 1])
            place += 1
        else:
            charge(len(patterns[found]))
            parts.append(patterns[found])
            place += len(found)
    return "".join(parts)


def _refuse_to_split_characters(text: str) -> None:
    if not text.isascii():
        raise UnsupportedError(
            "an empty string is between the bytes of a character, too: what to replace must not be empty"
        )


def _trim(method: Callable[[str, str], str], text: Value, removed: Value) -> Value:
    """Remove characters, a prefix or a suffix from a string."""
    return charged(method(check_string(1, text), check_string(2, removed)))


for _name, _method in (
    ("trim", str.strip),
    ("trim_left", str.lstrip),
    ("trim_right", str.rstrip),
    ("trim_prefix", str.removeprefix),
    ("trim_suffix", str.removesuffix),
):
    builtin(_name)(partial(_trim, _method))


@builtin("trim_space")
def trim_space(text: Value) -> Value:
    """Remove white space from both ends of a string."""
    return charged(check_string(1, text).strip(_SPACES))


@builtin("strings.reverse")
def reverse(text: Value) -> Value:
    """Return the characters of a string from the last to the first."""
    return charged(check_string(1, text)[::-1])


@builtin("sprintf")
def format_values(text: Value, values: Value) -> Value:
    """Replace the verbs of a string by values."""
    if type(text) is not str or type(values) is not list:
        check_string(1, text)
        check_array(2, values)
    return format_text(text, values)


@builtin("internal.template_string")
def render_template_string(parts: Value) -> Value:
    """Join the parts of a template string: scalars, and sets of the one value of an expression, or of none."""
    found = [_show_part(one) for one in check_array(1, parts)]
    if any(len(one) > 1 for one in found):
        raise BuiltinError("template-strings must not produce multiple outputs")
    shown = [one[0] for one in found]
    charge(sum(map(len, shown)))
    return "".join(shown)


@builtin("internal.print")
def list_printed_lines(parts: Value) -> Value:
    """List the lines that `print` writes: one for each choice of a value of each part."""
    lines = []
    for shown in product(*map(_show_part, check_array(1, parts))):
        charge(sum(map(len, shown)) + len(shown))
        lines.append(" ".join(shown))
    return lines


def _show_part(part: Value) -> list[str]:
    """Return the texts of the values of a part."""
    kind = type(part)
    if kind is str:
        return [part]
    if kind is set:
        return [one if type(one) is str else to_text(one) for one in members(part)] or ["<undefined>"]
    if part is None or kind is bool or is_number(part):
        return [to_text(part)]
    raise BuiltinError(f"illegal argument type: {type_name(part)}")


@builtin("trace")
def trace(text: Value) -> Value:
    """Return true; there is no trace to write to."""
    check_string(1, text)
    return True
