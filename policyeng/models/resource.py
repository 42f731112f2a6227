"""What policies evaluate: a resource, from its reader to its findings."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import final

from msgspec import Struct

from policyeng.models.base import JsonObject
from policyeng.models.documents import Carried
from policyeng.models.findings import Location, Problem

#: The location of what was not read from a file.
NOWHERE = Location()


@final
class Resource(Struct):
    """A subject of evaluation: an ARM resource, or a workload, an approval or a document in place of one.

    Attributes:
        key: its id in lower case.
        document: the value of `input.resource`; like all inputs of policies, it is read-only.
        target_type: lower-case ARM type, `workload`, `approval` or `document`.
        reported_id: the id in findings.
        reported_type: the type in findings.
        home: the ARM id to compare with the scopes of exemptions; empty if there is none.
        workspace: position of its workspace among the subjects; -1 if it has none in the snapshot.
        unreadable: reasons why fields cannot be read, by JSON Pointer.
        possible: the only possible values of unreadable fields, where they are known.
        carried: what its format can express; None if everything.
        is_gap: whether it represents the resources of its type at and below its home that could not be read.
        remarks: problems about how it is written.
    """

    key: str
    document: JsonObject
    target_type: str
    reported_id: str
    reported_type: str
    home: str = ""
    workspace: int = -1
    unreadable: Mapping[str, str] = MappingProxyType({})
    location: Location = NOWHERE
    possible: Mapping[str, frozenset[object]] = MappingProxyType({})
    carried: Carried | None = None
    is_gap: bool = False
    remarks: tuple[Problem, ...] = ()
