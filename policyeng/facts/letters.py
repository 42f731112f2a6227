"""Letters that look like others: texts as a reader sees them, for comparing names of people, tags and words.

Sources: Unicode Standard Annex 15 (NFKC); DerivedCoreProperties, `Default_Ignorable_Code_Point`; Unicode Technical
Standard 39, `confusables.txt`, as far as a letter of Cyrillic, Greek or Latin looks like one of ASCII.
"""

from __future__ import annotations

import unicodedata

from policyeng.later import lazy_pattern
from policyeng.models import lowered

#: Cyrillic and Greek letters, and those of ASCII that they look like.
_OTHER_SCRIPTS = {
    **dict(zip("авеһікӏмнорсԁтухјѕԛԝ", "abehiklmhopcdtyxjsqw", strict=True)),
    **dict(zip("АВЕІЈКМНОРЅСТУХԚԜ", "ABEIJKMHOPSCTYXQW", strict=True)),
    **dict(zip("αβεγηικνορτυχω", "abeynikvoptuxw", strict=True)),
    **dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABEZHIKMNOPTYX", strict=True)),
}
_LOOK_ALIKES = str.maketrans({**_OTHER_SCRIPTS, **dict(zip("İıɑɡ", "Iiag", strict=True))})
#: Invisible, and not of the category Cf; U+2800 is a blank of Braille.
_IGNORABLE = lazy_pattern(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\U000e0000-\U000e0fff]"
)
#: What separates the words of a name with an address, such as `Anna <anna@contoso.example>`.
_BETWEEN = lazy_pattern(r"[\s<>()\[\],;\"]+")


def plain(text: str) -> str:
    """Return a text after NFKC and without invisible characters."""
    if text.isascii():
        return text
    visible = (letter for letter in unicodedata.normalize("NFKC", text) if unicodedata.category(letter) != "Cf")
    return _IGNORABLE.sub("", "".join(visible))


def as_seen(text: str) -> str:
    """Return a text as a reader sees it: `plain`, and in ASCII where all other letters look like those of ASCII."""
    text = plain(text)
    seen = text.translate(_LOOK_ALIKES)
    return seen if seen.isascii() else text


def find_odd_letter(name: str) -> str:
    """Return the first letter of a type or another technical name that is not printable ASCII, escaped; empty for none.

    Letters that become ASCII in lower case, such as the Kelvin sign, are compared as these.
    """
    if name.isascii() and name.isprintable() and " " not in name:
        return ""
    return next((_escape(letter) for letter in name if not "!" <= lowered(letter) <= "~"), "")


def as_technical_name(name: str) -> str:
    """Return a technical name without letters that are not printable ASCII; those that look like ASCII become ASCII."""
    return "".join(letter for letter in as_seen(name) if "!" <= letter <= "~")


def _escape(letter: str) -> str:
    return "a space" if letter == " " else f"`U+{ord(letter):04X}`"


def same_person(one: str, other: str) -> bool:
    """Check whether two names or addresses look the same, ignoring case and invisible characters."""
    first, second = (plain(text).translate(_LOOK_ALIKES).strip().casefold() for text in (one, other))
    return first == second


def find_disguised_word(text: str) -> str:
    """Return the first word that mixes ASCII letters with Cyrillic or Greek ones that look like them; empty for none.

    A word with a letter that looks like none of ASCII is of the other script, such as an address with a Cyrillic name
    before `@contoso.example`.
    """
    words = () if text.isascii() else _BETWEEN.split(plain(text))
    return next(filter(_is_disguised, words), "")


def _is_disguised(word: str) -> bool:
    others = [letter for letter in word if not letter.isascii()]
    mixed = bool(others) and any(letter.isascii() and letter.isalpha() for letter in word)
    return mixed and all(letter in _OTHER_SCRIPTS for letter in others)
