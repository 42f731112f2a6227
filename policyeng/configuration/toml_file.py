"""Search and reading of the configuration file, with the line of each key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from policyeng.bundle.policy_selection import is_framework_file
from policyeng.configuration.policy_sections import enforcements, require_parameters, require_trusted
from policyeng.configuration.settings import LISTS, NAMES, GivenSetting, list_settings
from policyeng.configuration.toml_positions import File
from policyeng.errors import UsageError, suggest_nearest
from policyeng.sources.discovery import excluded

FILE_NAME = "policyeng.toml"

_TABLE = "tool.policyeng"
_SQLITE = "sqlite:///"


def find_configuration(named: Path | str | None, directory: Path) -> File | None:
    """Read the given configuration file, or else the nearest one in a directory or its parents; None without one.

    Raises:
        UsageError: the given file does not exist or has no settings, a file is not TOML, or a file that was found by
            search can be changed by other users.
    """
    if named:
        path = directory / named
        if not path.is_file():
            remedy = "pass an existing file, or remove `--config`"
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
    """Yield the configuration files that a search from a directory may find, nearest first; they need not exist."""
    for folder in (directory, *directory.parents):
        yield from (folder / FILE_NAME, folder / "pyproject.toml")


def _read(path: Path) -> File | None:
    """Read the table of settings in a file; None for a `pyproject.toml` without one."""
    import tomllib  # only if there is a file to read

    try:
        text = path.read_bytes().decode("utf-8")
        document = tomllib.loads(text)
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise UsageError(f"cannot read the file ({reason})", place=(str(path),), remedy="make it readable") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        reason = str(error) or "nested too deeply"
        raise UsageError(f"not valid TOML ({reason})", place=(str(path),), remedy="fix the syntax") from None
    if path.name != "pyproject.toml":
        return File(path, text, document)
    tool = document.get("tool")
    table = tool.get("policyeng") if isinstance(tool, dict) else None
    if not isinstance(table, dict):
        return None
    first = next((line for line, row in enumerate(text.splitlines(), 1) if _TABLE in row), 1)
    return File(path, text, table, first)


def from_file(file: File) -> Iterator[tuple[str, GivenSetting]]:
    """Yield the settings that a file sets, with their names.

    Raises:
        UsageError: a key is unknown, or its value is not valid.
    """
    for key, value in file.table.items():
        place = file.place(key)
        if key not in NAMES:
            raise UsageError(
                f"unknown key `{key}`{suggest_nearest(key, NAMES)}", place=(place,), remedy=list_settings()
            )
        yield key, GivenSetting(_value(key, value, file, place), place)


def store_beside(folder: Path, url: str) -> str:
    """Return the URL of a store with a relative path resolved against a folder."""
    path = url.removeprefix(_SQLITE)
    return f"{_SQLITE}{folder / path}" if url.startswith(_SQLITE) and path else url


def _value(key: str, value: object, file: File, place: str) -> object:
    if key == "parameters":
        require_parameters(value, file)
    if key == "modes":
        return enforcements(value, file)
    if key == "estates":
        from policyeng.configuration.estate_sections import estates_of  # most runs are not audits

        return estates_of(value, file)
    if key == "store" and isinstance(value, str):
        return store_beside(file.path.parent, value)
    if key == "notify":
        from policyeng.configuration.notification_sections import targets  # the same

        return targets(value, file)
    if key == "max_exemption_days" and type(value) is not int:
        raise UsageError(f"invalid value `{value}` for `{key}`", place=(place,), remedy="use a number of days")
    if key in ("require_signature", "allow_unsigned_directory", "strict_unknown") and not isinstance(value, bool):
        raise UsageError(f"invalid value `{value}` for `{key}`", place=(place,), remedy="use true or false")
    if key == "verification_key" and isinstance(value, str) and value:
        return file.path.parent / value
    if key not in LISTS:
        return value
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(entry, str) and entry for entry in listed):
        raise UsageError(f"`{key}` is not a list of strings", place=(place,), remedy=f'write `{key} = ["..."]`')
    if key == "exclude":
        return excluded(listed, file.path.parent)
    if key == "frameworks":
        return [str(file.path.parent / entry) if is_framework_file(entry) else entry for entry in listed]
    return [file.path.parent / entry for entry in listed] if key == "exemptions" else listed
