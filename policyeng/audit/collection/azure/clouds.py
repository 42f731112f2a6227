"""The clouds of Azure, with the addresses of their resource managers and authorities."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple
from urllib.parse import urlsplit

from policyeng.errors import UsageError, suggest_nearest


class Cloud(NamedTuple):
    """One cloud.

    Attributes:
        name: the name in the Azure CLI.
        endpoint: the address of its resource manager, without a slash at the end.
        authority: the host that issues tokens.
        audience: the scope of tokens.
    """

    name: str
    endpoint: str
    authority: str
    audience: str

    @property
    def is_local(self) -> bool:
        """Whether requests stay on this machine, which needs no TLS."""
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


def find_cloud(name: str, endpoint: str = "") -> Cloud:
    """Return a cloud by its name in any case; `endpoint` replaces its resource manager and the audience of tokens.

    An address on this machine does not change the audience.

    Raises:
        UsageError: there is no such cloud, or the endpoint is not an `https` address without a path.
    """
    cloud = next((cloud for known, cloud in CLOUDS.items() if known.lower() == name.strip().lower()), None)
    if cloud is None:
        known = ", ".join(f"`{one}`" for one in CLOUDS)
        remedy = f"known are {known}; --endpoint names the address of another one"
        raise UsageError(f"there is no cloud `{name}`{suggest_nearest(name, CLOUDS)}", remedy=remedy)
    if endpoint:
        cloud = cloud._replace(endpoint=_address(endpoint))
    return cloud if cloud.is_local else cloud._replace(audience=f"{cloud.endpoint}/.default")


def _address(endpoint: str) -> str:
    """Check and normalize the address of a resource manager."""
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
