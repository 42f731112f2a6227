"""What is in force, read again when a file changes that it is read from: policies, exemptions, parameters, settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from policyeng.configuration import Settings
from policyeng.context import EvaluationSetup
from policyeng.errors import PolicyengError
from policyeng.server.file_watcher import Watched
from policyeng.sources.problems import raise_errors


class PolicyReload(Watched[EvaluationSetup]):
    """The last good reading of all of it together; a request keeps what it began with.

    A configuration file that appears, or names other exemption files or another key, is a change as well.

    Args:
        settings: reads the settings; raises `UsageError` when that cannot be.
        load: reads what is in force by them; a faulty exemption is a fault here, and the last good reading stays.
        paths: files and directories besides those that the settings name.
        seconds: how often they are looked at.

    Raises:
        PolicyengError: of the first reading.
    """

    def __init__(
        self,
        settings: Callable[[], Settings],
        load: Callable[[Settings], EvaluationSetup],
        paths: Sequence[Path],
        *,
        seconds: float = 2.0,
    ) -> None:
        self._settings = settings
        self._named: tuple[Path, ...] = ()

        def read() -> EvaluationSetup:
            held = load(settings())
            raise_errors(held.problems)
            return held

        super().__init__("policies", read, paths, seconds=seconds)

    def _files(self) -> Sequence[Path]:
        with suppress(PolicyengError):  # settings that cannot be read name nothing; reading them says why
            self._named = tuple(_list_named_files(self._settings()))
        return (*self._paths, *self._named)


def _list_named_files(settings: Settings) -> Iterator[Path]:
    yield from settings.exemptions
    if settings.verification_key is not None:
        yield settings.verification_key
