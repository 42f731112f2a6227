"""The log of the commands that keep running: one form, on standard error."""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import orjson

from policyeng.cli.context import find_known
from policyeng.cli.options import option
from policyeng.report.escaping import visible

FORMATS = ("text", "json")
LEVELS = ("debug", "info", "warning", "error")

Format = Annotated[
    str, option("Operation", f"Format of the log on standard error: {', '.join(FORMATS)}.", metavar="FORMAT")
]
Level = Annotated[
    str,
    option(
        "Operation", f"Least level to log: {', '.join(LEVELS)}. Successful probes are logged at debug.", metavar="LEVEL"
    ),
]


@dataclass(kw_only=True, repr=False, eq=False)
class LogOptions:
    """The options of the log."""

    log_format: Format = "text"
    log_level: Level = "info"

    def start_logging(self) -> None:
        """Write the log records of this process, and of processes that it forks, to standard error.

        Libraries log from warnings on, in the same form.

        Raises:
            UsageError: the format or the level is unknown.
        """
        format_ = find_known(self.log_format, FORMATS, "log format")
        level = find_known(self.log_level, LEVELS, "log level").upper()
        handler = logging.StreamHandler(sys.stderr) if sys.stderr is not None else logging.NullHandler()
        handler.setFormatter(_JsonLines() if format_ == "json" else _TextLines())
        logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
        logging.getLogger("policyeng").setLevel(level)


class _TextLines(logging.Formatter):
    """`TIME LEVEL COMPONENT: MESSAGE`; the traceback of an internal error follows on its own lines."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines of a record; control characters in the message are escaped."""
        line = f"{_time_of(record)} {record.levelname} {_component_of(record)}: {visible(record.getMessage())}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class _JsonLines(logging.Formatter):
    """One JSON object a line; the fields that a record has in `fields` follow those that all records have."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        document = {
            "time": _time_of(record),
            "level": record.levelname.lower(),
            "component": _component_of(record),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            document["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(document, default=str).decode()


def _time_of(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _component_of(record: logging.LogRecord) -> str:
    return record.name.removeprefix("policyeng.")
