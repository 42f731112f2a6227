"""Resources in the templates that other resources carry, such as a deployment in a Terraform plan or a REST body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from policyeng.errors import InputError
from policyeng.models import JsonObject
from policyeng.sources.arm_template import contents
from policyeng.sources.arm_template.carriers import carrier_of, member, template_in
from policyeng.sources.reading import Loaded, Placed, Reading

#: Formats of what exists: a deployment in them is over, and its resources are listed by themselves.
_LIVE = ("arm-rest", "native", "resource-graph")


def with_contents(document: Loaded, format_name: str) -> Loaded:
    """Add the resources in the templates that the document's resources carry, with their places in the document.

    Args:
        document: as its format reads it.
        format_name: of that format. In formats of what exists a carrier without a template is a record, and adds
            nothing; in all others it is refused.
    """
    reading = document.reading
    carriers = [
        placed
        for placed in reading.resources
        if carrier_of(placed.resource["type"], placed.resource) is not None
        and not (format_name in _LIVE and is_record(placed.resource))
    ]
    for placed in carriers:
        inner = _at_places(contents(placed.resource, placed.unreadable, document.file), placed)
        reading = replace(
            reading,
            resources=(*reading.resources, *inner.resources),
            refusals=(*reading.refusals, *inner.refusals),
            incomplete=(*reading.incomplete, *inner.incomplete),
            remarks=(*reading.remarks, *inner.remarks),
        )
    return document._replace(reading=reading) if carriers else document


def is_record(resource: JsonObject) -> bool:
    """Whether a carrier, in a document of what exists, is without a template and has been deployed or stored."""
    carrier, properties = carrier_of(resource["type"], resource), member(resource, "properties")
    if carrier is None or not isinstance(properties, Mapping):
        return True
    try:
        stated = template_in(carrier, properties)
    except InputError:
        return False
    return stated is None and (carrier.is_stored or isinstance(member(properties, "provisioningState"), str))


def _at_places(reading: Reading, carrier: Placed) -> Reading:
    """The reading of a carrier's template, with pointers into the document and not into the carrier."""
    return replace(
        reading,
        resources=tuple(
            placed._replace(
                pointer=_place(carrier, placed.pointer),
                fields={at: _place(carrier, there) for at, there in placed.fields.items()},
            )
            for placed in reading.resources
        ),
        refusals=tuple(refusal._replace(pointer=_place(carrier, refusal.pointer)) for refusal in reading.refusals),
        remarks=tuple((_place(carrier, pointer), message) for pointer, message in reading.remarks),
    )


def _place(carrier: Placed, pointer: str) -> str:
    """Where a part of a carrier is in the document: as `fields` has it, or what is nearest above it."""
    above = pointer
    while above and above not in carrier.fields:
        above = above.rpartition("/")[0]
    return carrier.fields.get(above, carrier.pointer) + pointer[len(above) :]
