"""The siblings of a VM size: the larger and the smaller sizes of its series, nearest first.

A larger sibling has more memory and at least as many vCPUs and accelerators; a smaller one has less memory and at most
as many of the others. The nearest sibling changes any of the three by the smallest factor: for Standard_M32ls with
32 vCPUs and 256 GiB it is Standard_M32ts, not Standard_M8ms with 8 vCPUs and 219 GiB. Promo sizes are series of
their own.

Sizes with constrained vCPUs (Standard_E8-2s_v3 is Standard_E8s_v3 with 2 of its 8) count with the vCPUs that are left,
and are offered only to others of that kind: who has Standard_E4s_v3 is not sent to larger machines with fewer vCPUs.
Source: learn.microsoft.com, "Constrained vCPU sizes for database workloads".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from policyeng.facts.catalogue import Facts, VmSize
from policyeng.later import lazy_pattern
from policyeng.models import lowered

_LEFT = lazy_pattern(r"\d-(\d+)")

#: A replacement has at most this many times the memory, vCPUs and accelerators of a size, and no less than that part.
MOST_TIMES = 4
#: A size that retires within so many days is no replacement; the default notice of the policy on isolated sizes.
NOTICE_DAYS = 180
#: The GPU that a series is named for; older series have one of their own each.
_GPU = lazy_pattern(r"T4|A100|A10|H100|H200|GB200|GB300|MI300X|V620|V710")
_AMD = lazy_pattern(r"MI300X|V620|V710|NVv4")


def can_replace(facts: Facts, own: VmSize, other: VmSize, as_of: datetime) -> bool:
    """Return whether work on one size can run on another without a decision about its hardware.

    The other size is offered beyond the notice, has about as much memory, as many vCPUs and accelerators, and
    accelerators of the same kind: no FPGA for a GPU, no AMD GPU for one of NVIDIA, no GPU for graphics for one for
    computing. The model of the GPU stays the same as long as it is offered, and then becomes the one that the vendor
    recommends, if it recommends one.

    Source: learn.microsoft.com, "GPU accelerated virtual machine sizes".
    """
    retirement = facts.retirement(other.name)
    if retirement is not None and retirement.comes_within(NOTICE_DAYS, as_of):
        return False
    pairs = zip(_amounts(own), _amounts(other), strict=True)
    if any(max(one, many) > MOST_TIMES * min(one, many) for one, many in pairs):
        return False
    if own.accelerator != other.accelerator or _gpu_line(own) != _gpu_line(other):
        return False
    if _gpu_model(own) == _gpu_model(other):
        return True
    gone = facts.retirement(own.name)
    return gone is not None and gone.has_come(as_of) and gone.move_to in (None, other.series)


def _gpu_line(size: VmSize) -> tuple[bool, bool] | None:
    """Return whether the GPU of a size is one of AMD, and whether it is one for graphics; None without a GPU."""
    if size.accelerator != "gpu":
        return None
    return _AMD.search(size.series) is not None, size.series.startswith(("NV", "NG"))


def _gpu_model(size: VmSize) -> str | None:
    found = _GPU.search(size.series)
    return None if size.accelerator != "gpu" else found[0] if found else size.series


def larger_siblings(facts: Facts, name: str, as_of: datetime) -> tuple[VmSize, ...]:
    """Return the larger sizes of the same series that are not retired at an aware moment, nearest first.

    A size that the catalogue does not know has none.
    """
    own = facts.size(name)
    return (
        _sort_by_distance(own, [other for other in _offered(facts, own, as_of) if _is_smaller(own, other)])
        if own
        else ()
    )


def smaller_siblings(facts: Facts, name: str, as_of: datetime) -> tuple[VmSize, ...]:
    """Return the smaller sizes of the same series, nearest first; those retired at an aware moment come last."""
    own = facts.size(name)
    if own is None:
        return ()
    smaller = [other for other in _of_its_kind(facts, own) if _is_smaller(other, own)]
    return tuple(sorted(_sort_by_distance(own, smaller), key=lambda other: is_retired(facts, other.name, as_of)))


def is_retired(facts: Facts, name: str, as_of: datetime) -> bool:
    """Return whether the retirement of a size has come at an aware moment."""
    retirement = facts.retirement(name)
    return retirement is not None and retirement.has_come(as_of)


def _offered(facts: Facts, own: VmSize, as_of: datetime) -> Iterator[VmSize]:
    return (size for size in _of_its_kind(facts, own) if not is_retired(facts, size.name, as_of))


def _of_its_kind(facts: Facts, own: VmSize) -> Iterator[VmSize]:
    return (size for size in facts.sizes_of(own.series) if _is_constrained(own) or not _is_constrained(size))


def _is_constrained(size: VmSize) -> bool:
    return _LEFT.search(size.name) is not None


def _is_smaller(one: VmSize, other: VmSize) -> bool:
    (memory, *rest), (more_memory, *more) = _amounts(one), _amounts(other)
    return memory < more_memory and all(few <= many for few, many in zip(rest, more, strict=True))


def _amounts(size: VmSize) -> tuple[float, float, float]:
    """Memory in GiB, vCPUs that are left, and accelerators (GPUs and FPGAs)."""
    left = _LEFT.search(size.name)
    return size.memory_gib, int(left[1]) if left else size.vcpus, size.gpus + size.fpgas


def _sort_by_distance(own: VmSize, others: list[VmSize]) -> tuple[VmSize, ...]:
    """Nearest first: by the greatest factor, then by all factors together, then by the letters of the name."""
    return tuple(sorted(others, key=lambda other: (*_factors(own, other), _letters_apart(own, other), other.name)))


def _factors(own: VmSize, other: VmSize) -> tuple[float, float]:
    pairs = zip(_amounts(own), _amounts(other), strict=True)
    factors = [max(one, many) / min(one, many) if min(one, many) else 1.0 + max(one, many) for one, many in pairs]
    return max(factors), sum(factors)


def _letters_apart(own: VmSize, other: VmSize) -> int:
    """Return how many letters differ: Standard_M64s is next to Standard_M64ms, not to Standard_M64m."""
    one, two = (Counter(letter for letter in lowered(size.name) if letter.isalpha()) for size in (own, other))
    return ((one - two) + (two - one)).total()
