"""The configuration file: found, read, and each of its keys with the line that sets it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from policyeng.configuration.policy_sections import enforcements, require_parameters, require_trusted
from policyeng.configuration.settings import LISTS, NAMES, GivenSetting, known
from policyeng.configuration.toml_positions import File
from policyeng.errors import UsageError, nearest
from policyeng.sources.file_patterns import excluded

FILE_NAME = "policyeng.toml"

_TABLE = "tool.policyeng"
_SQLITE = "sqlite:///"


def found(named: Path | str | None, directory: Path) -> File | None:
    """The configuration file that is named, else the nearest one from a directory upwards; None where there is none.

    Raises:
        UsageError: the one that is named is missing or has no settings, one of them is not TOML, or one that was not
            named can be changed by other users.
    """
    if named:
        path = directory / named
        if not path.is_file():
            remedy = "name a file that exists, or leave `--config` out"
            raise UsageError("no such configuration file", place=(str(path),), remedy=remedy)
        file = _read(path)
        if file is None:
            raise UsageError(f"the file has no `[{_TABLE}]`", place=(str(path),), remedy=f"add `[{_TABLE}]`")
        return file
    for path in candidates(directory):
        if path.is_file() and (file := _read(path)) is not None:
            require_trusted(path, directory)
            return file._replace(inherited=path.parent != directory)
    return None


def candidates(directory: Path) -> Iterator[Path]:
    """The configuration files that a search in a directory may find, the nearest first; they need not exist."""
    for folder in (directory, *directory.parents):
        yield from (folder / FILE_NAME, folder / "pyproject.toml")


def _read(path: Path) -> File | None:
    """The table of settings in a file; None when it is a `pyproject.toml` without one."""
    import tomllib  # only where there is a file to read

    try:
        text = path.read_bytes().decode("utf-8")
        document = tomllib.loads(text)
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise UsageError(f"cannot be read ({reason})", place=(str(path),), remedy="make it readable") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        reason = str(error) or "nested too deeply"
        raise UsageError(f"not valid TOML ({reason})", place=(str(path),), remedy="correct it there") from None
    if path.name != "pyproject.toml":
        return File(path, text, document)
    tool = document.get("tool")
    table = tool.get("policyeng") if isinstance(tool, dict) else None
    if not isinstance(table, dict):
        return None
    first = next((line for line, row in enumerate(text.splitlines(), 1) if _TABLE in row), 1)
    return File(path, text, table, first)


def from_file(file: File) -> Iterator[tuple[str, GivenSetting]]:
    """What a file sets, by the names of the settings.

    Raises:
        UsageError: a key is unknown, or its value does not fit.
    """
    for key, value in file.table.items():
        place = file.place(key)
        if key not in NAMES:
            raise UsageError(f"unknown key `{key}`{nearest(key, NAMES)}", place=(place,), remedy=known())
        yield key, GivenSetting(_value(key, value, file, place), place)


def store_beside(folder: Path, url: str) -> str:
    """The URL of a store whose path, if it has a relative one, is relative to a folder."""
    path = url.removeprefix(_SQLITE)
    return f"{_SQLITE}{folder / path}" if url.startswith(_SQLITE) and path else url


def _value(key: str, value: object, file: File, place: str) -> object:
    if key == "parameters":
        require_parameters(value, file)
    if key == "modes":
        return enforcements(value, file)
    if key == "estates":
        from policyeng.configuration.estate_sections import estates_of  # most runs are no audits

        return estates_of(value, file)
    if key == "store" and isinstance(value, str):
        return store_beside(file.path.parent, value)
    if key == "notify":
        from policyeng.configuration.notification_sections import targets  # the same

        return targets(value, file)
    if key == "max_exemption_days" and type(value) is not int:
        raise UsageError(f"`{key}` does not fit: `{value}`", place=(place,), remedy="write a number of days")
    if key in ("require_signature", "allow_unsigned_directory", "strict_unknown") and not isinstance(value, bool):
        raise UsageError(f"`{key}` does not fit: `{value}`", place=(place,), remedy="write true or false")
    if key == "verification_key" and isinstance(value, str) and value:
        return file.path.parent / value
    if key not in LISTS:
        return value
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(entry, str) and entry for entry in listed):
        raise UsageError(f"`{key}` is not a list of text", place=(place,), remedy=f'write `{key} = ["..."]`')
    if key == "exclude":
        return excluded(listed, file.path.parent)
    return [file.path.parent / entry for entry in listed] if key == "exemptions" else listed
