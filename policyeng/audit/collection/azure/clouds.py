"""The clouds of Azure: where their resource managers answer, and who signs in to them."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple
from urllib.parse import urlsplit

from policyeng.errors import UsageError, nearest


class Cloud(NamedTuple):
    """One cloud.

    Attributes:
        name: as the Azure CLI calls it.
        endpoint: the address of its resource manager, without a slash at the end.
        authority: the host that gives out tokens.
        audience: what tokens are asked for.
    """

    name: str
    endpoint: str
    authority: str
    audience: str

    @property
    def is_local(self) -> bool:
        """Whether requests stay on this machine, where they need no TLS."""
        return urlsplit(self.endpoint).scheme == "http"


def _public(name: str, host: str, authority: str) -> Cloud:
    return Cloud(name, f"https://{host}", authority, f"https://{host}/.default")


#: Source: `az cloud list`, `endpoints.resourceManager` and `endpoints.activeDirectory`.
CLOUDS = {
    cloud.name: cloud
    for cloud in (
        _public("AzureCloud", "management.azure.com", "login.microsoftonline.com"),
        _public("AzureUSGovernment", "management.usgovcloudapi.net", "login.microsoftonline.us"),
        _public("AzureChinaCloud", "management.chinacloudapi.cn", "login.chinacloudapi.cn"),
    )
}


def cloud_of(name: str, endpoint: str = "") -> Cloud:
    """A cloud by its name in any case; with `endpoint` its resource manager answers there, and tokens are for that one.

    An address on this machine stands for the cloud's own, and keeps its tokens.

    Raises:
        UsageError: there is none of the name, or the endpoint is no `https` address without a path.
    """
    cloud = next((cloud for known, cloud in CLOUDS.items() if known.lower() == name.strip().lower()), None)
    if cloud is None:
        known = ", ".join(f"`{one}`" for one in CLOUDS)
        remedy = f"known are {known}; --endpoint names the address of another one"
        raise UsageError(f"there is no cloud `{name}`{nearest(name, CLOUDS)}", remedy=remedy)
    if endpoint:
        cloud = cloud._replace(endpoint=_address(endpoint))
    return cloud if cloud.is_local else cloud._replace(audience=f"{cloud.endpoint}/.default")


def _address(endpoint: str) -> str:
    """An address of a resource manager as its paths are put behind it."""
    try:
        parts = urlsplit(endpoint.strip())
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        parts, host = urlsplit(""), ""
    plain = not (parts.query or parts.fragment or parts.username or parts.path.strip("/"))
    if not (host and plain and (parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host)))):
        remedy = "give it as `https://management.example.com`; `http` is for this machine alone"
        raise UsageError(f"`{endpoint}` is no address of a resource manager", remedy=remedy)
    return f"{parts.scheme}://{parts.netloc}"


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
