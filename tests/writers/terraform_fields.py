"""The fields of a resource that the azurerm provider is to state whole."""

from __future__ import annotations

from policyeng.models import JsonObject

#: What the service states, so no plan does.
_SERVICE_STATES = ("/properties/isAttachedCompute", "/properties/provisioningState")


class CannotSayError(Exception):
    """The azurerm provider has no way to state a resource, or states by itself what it does not."""


class Fields:
    """The fields of a resource, each taken once; what is left at the end cannot be stated."""

    def __init__(self, resource: JsonObject) -> None:
        self._left = dict(_leaves(resource, ""))
        for pointer in ("/id", "/type", *_SERVICE_STATES):
            self._left.pop(pointer, None)

    def take(self, pointer: str) -> object:
        """The value at a pointer; None where there is none."""
        return self._left.pop(pointer, None)

    def need(self, pointer: str, *allowed: object) -> object:
        """A value that the provider always states; one of the allowed ones if there are any."""
        value = self.take(pointer)
        if value is None or (allowed and value not in allowed):
            raise CannotSayError(pointer)
        return value

    def given(self, pointer: str, value: object) -> None:
        """Take what the provider states by itself; None for nothing."""
        if self.take(pointer) != value:
            raise CannotSayError(pointer)

    def below(self, pointer: str) -> JsonObject:
        """All texts below a pointer, by key, such as tags."""
        keys = [key for key in self._left if key.startswith(f"{pointer}/")]
        return {key.removeprefix(f"{pointer}/"): self._left.pop(key) for key in keys}

    def end(self) -> None:
        """Require that nothing else has to be stated."""
        if self._left:
            raise CannotSayError(next(iter(self._left)))


def _leaves(value: object, pointer: str) -> list[tuple[str, object]]:
    """The values of a resource by pointer; lists are values, and so are empty objects."""
    if not isinstance(value, dict) or not value:
        return [(pointer, value)]
    inner = [(f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}", one) for key, one in value.items()]
    return [leaf for at, one in inner for leaf in _leaves(one, at)]
