"""Datastores, connections and registries.

Source of the rows: `_schema/_datastore/*.py`, `_schema/workspace/connections/*.py`, `_schema/registry/*.py` and
`_to_rest_object` of their entities in azure-ai-ml 1.35.2. Secrets are not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from policyeng.models import JsonObject, lowered
from policyeng.sources.azure_cli.base import PROVIDER, CliDocumentKind, build_id, unplaced
from policyeng.sources.azure_cli.tables import DocumentTables, Lossy, Sent, convert_document
from policyeng.sources.azure_cli.value_converters import IDENTITY, IDENTITY_PRINTED, mapping, name, region, tags, word
from policyeng.sources.field_mapping import FieldMapping, UnfitError, boolean, text
from policyeng.sources.parsed import Placed, Refusal, Surroundings

_DATASTORE = f"{PROVIDER}/workspaces/datastores"
_CONNECTION = f"{PROVIDER}/workspaces/connections"
_REGISTRY = f"{PROVIDER}/registries"
_P = "/properties"

_CATEGORIES: Mapping[str, str] = {
    "git": "Git",
    "container_registry": "ContainerRegistry",
    "python_feed": "PythonFeed",
    "feature_store": "FeatureStore",
    "s3": "S3",
    "snowflake": "Snowflake",
    "azure_sql_db": "AzureSqlDb",
    "azure_synapse_analytics": "AzureSynapseAnalytics",
    "azure_my_sql_db": "AzureMySqlDb",
    "azure_postgres_db": "AzurePostgresDb",
    "custom": "CustomKeys",
    "custom_keys": "CustomKeys",
    "azure_data_lake_gen2": "ADLSGen2",
    "azure_blob": "AzureBlob",
    "azure_one_lake": "AzureOneLake",
    "azure_open_ai": "AzureOpenAI",
    "azure_ai_services": "AIServices",
    "azure_ai_search": "CognitiveSearch",
    "azure_content_safety": "CognitiveService",
    "azure_speech_services": "CognitiveService",
    "cognitive_search": "CognitiveSearch",
    "cognitive_service": "CognitiveService",
    "api_key": "ApiKey",
    "open_ai": "OpenAI",
    "serp": "Serp",
    "serverless": "Serverless",
}
_DATASTORES: Mapping[str, str] = {
    "azure_blob": "AzureBlob",
    "azure_file": "AzureFile",
    "azure_data_lake_gen1": "AzureDataLakeGen1",
    "azure_data_lake_gen2": "AzureDataLakeGen2",
    "one_lake": "OneLake",
    "hdfs": "Hdfs",
}
#: The type of a datastore's credentials by a key in them.
_CREDENTIALS = (
    ("account_key", "AccountKey"),
    ("sas_token", "Sas"),
    ("thumbprint", "Certificate"),
    ("client_secret", "ServicePrincipal"),
    ("kerberos_keytab", "KerberosKeytab"),
    ("kerberos_password", "KerberosPassword"),
)


def _credentials(value: object) -> object:
    known = mapping(value)
    if not known:
        return "None"
    kind = next((kind for key, kind in _CREDENTIALS if isinstance(known, dict) and key in known), "")
    if not kind:
        raise UnfitError(f"an object with one of {', '.join(f'`{key}`' for key, _ in _CREDENTIALS)}")
    return kind


def _regions(value: object) -> object:
    """Return the regions of a registry, without the storage accounts and container registries that it creates."""
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise UnfitError("a list of `{location}`")
    return [{"location": region(entry.get("location"))} for entry in value]


_STORE = DocumentTables(
    table=(
        FieldMapping("/name", "/name", name),
        FieldMapping("/type", f"{_P}/datastoreType", word(others=_DATASTORES)),
        FieldMapping("/description", f"{_P}/description", text),
        FieldMapping("/tags", f"{_P}/tags", tags),
        FieldMapping("/account_name", f"{_P}/accountName", text),
        FieldMapping("/container_name", f"{_P}/containerName", text),
        FieldMapping("/file_share_name", f"{_P}/fileShareName", text),
        FieldMapping("/filesystem", f"{_P}/filesystem", text),
        FieldMapping("/store_name", f"{_P}/storeName", text),
        FieldMapping("/name_node_address", f"{_P}/nameNodeAddress", text),
        FieldMapping("/one_lake_workspace_name", f"{_P}/oneLakeWorkspaceName", text),
        FieldMapping("/artifact/name", f"{_P}/artifact/artifactName", text),
        FieldMapping("/artifact/type", f"{_P}/artifact/artifactType", word("LakeHouse")),
        FieldMapping("/endpoint", f"{_P}/endpoint", text),
        FieldMapping("/protocol", f"{_P}/protocol", text),
        FieldMapping("/credentials", f"{_P}/credentials/credentialsType", _credentials),
        FieldMapping("/hdfs_server_certificate", ""),
    ),
    sent=(Sent(f"{_P}/credentials/credentialsType", "None"),),
    always=("type", "credentials"),
    lossy=(
        Lossy(
            "credentials",
            {},
            f"{_P}/credentials/credentialsType",
            "`az ml` prints `credentials: {}` for a datastore without credentials and for one whose secrets it hides",
        ),
    ),
)
_LINK = DocumentTables(
    table=(
        FieldMapping("/name", "/name", name),
        FieldMapping("/type", f"{_P}/category", word(others=_CATEGORIES)),
        FieldMapping("/description", ""),
        FieldMapping("/tags", ""),
        # Specialized connections have other names for the target.
        *(
            FieldMapping(f"/{key}", f"{_P}/target", text)
            for key in ("url", "api_base", "azure_endpoint", "endpoint", "target")
        ),
        FieldMapping(
            "/credentials/type",
            f"{_P}/authType",
            word(
                "PAT",
                "SAS",
                "UsernamePassword",
                "ManagedIdentity",
                "ServicePrincipal",
                "AccessKey",
                "ApiKey",
                "AccountKey",
                "AAD",
                "None",
            ),
        ),
        FieldMapping("/credentials/resource_id", f"{_P}/credentials/resourceId", text),
        FieldMapping("/credentials/client_id", f"{_P}/credentials/clientId", text),
        *(
            FieldMapping(f"/credentials/{key}", "")
            for key in (
                "access_key_id",
                "account_key",
                "client_secret",
                "key",
                "password",
                "pat",
                "sas_token",
                "secret_access_key",
                "tenant_id",
                "username",
            )
        ),
        FieldMapping("/is_shared", f"{_P}/isSharedToAll", boolean),
        FieldMapping("/metadata", f"{_P}/metadata"),
        *(
            FieldMapping(f"/{key}", "")
            for key in (
                "account_name",
                "ai_services_resource_id",
                "api_key",
                "api_version",
                "artifact",
                "container_name",
                "one_lake_workspace_name",
                "open_ai_resource_id",
            )
        ),
    ),
    printed=(FieldMapping("/creation_context", ""), FieldMapping("/provisioning_state", "")),
    # `load_default` of `WorkspaceConnectionSchema.is_shared`.
    sent=(Sent(f"{_P}/isSharedToAll", True),),
    always=("type", "target", "credentials"),
)
_SHARED = DocumentTables(
    table=(
        FieldMapping("/name", "/name", name),
        FieldMapping("/location", "/location", region),
        FieldMapping("/description", ""),
        FieldMapping("/tags", "/tags", tags),
        FieldMapping("/public_network_access", f"{_P}/publicNetworkAccess", word("Enabled", "Disabled")),
        FieldMapping("/replication_locations", f"{_P}/regionDetails", _regions),
        FieldMapping("/intellectual_property/publisher", f"{_P}/intellectualPropertyPublisher", text),
        FieldMapping("/container_registry", ""),
    ),
    printed=(
        *IDENTITY,
        *IDENTITY_PRINTED,
        FieldMapping("/kind", "/kind", text),
        FieldMapping("/sku", "/sku/name", text),
        FieldMapping("/discovery_url", f"{_P}/discoveryUrl", text),
        FieldMapping("/mlflow_registry_uri", f"{_P}/mlFlowRegistryUri", text),
        FieldMapping("/managed_resource_group", ""),
        FieldMapping("/properties", ""),
    ),
    # `Registry._to_rest_object`.
    sent=(Sent("/identity/type", "SystemAssigned"),),
    always=("location", "public_network_access", "replication_locations"),
)


def _convert(
    arm_type: str, shape: DocumentTables
) -> Callable[[JsonObject, str, Surroundings], Iterator[Placed | Refusal]]:
    def bring(document: JsonObject, pointer: str, around: Surroundings) -> Iterator[Placed | Refusal]:
        arm_id = build_id(document, arm_type, around)
        resource: JsonObject = {"id": arm_id, "name": arm_id.rpartition("/")[2], "type": arm_type}
        given = convert_document(shape, resource, document, pointer, {})
        yield given._replace(unreadable={**given.unreadable, **unplaced(arm_id)})

    return bring


def _matches_datastore(document: JsonObject) -> bool:
    return _typed(document, _DATASTORES) and not document.keys().isdisjoint(
        {"account_name", "store_name", "name_node_address", "one_lake_workspace_name"}
    )


def _matches_connection(document: JsonObject) -> bool:
    """Check whether a document has only the keys of a connection: its types are common words in other files, too."""
    known = {row.source.split("/")[1] for row in _LINK.rows}
    credentials = document.get("credentials")
    points = {"target", "url", "api_base", "api_key", "azure_endpoint"}
    if not _typed(document, _DATASTORES):  # which have an `endpoint`, too
        points.add("endpoint")
    is_connection = not document.keys().isdisjoint(points) or (isinstance(credentials, dict) and "type" in credentials)
    return _typed(document, _CATEGORIES) and is_connection and document.keys() <= known


def _matches_registry(document: JsonObject) -> bool:
    return "name" in document and isinstance(document.get("replication_locations"), list)


def _typed(document: JsonObject, words: Mapping[str, str]) -> bool:
    stated = document.get("type")
    return "name" in document and isinstance(stated, str) and lowered(stated) in words


KINDS: tuple[CliDocumentKind, ...] = (
    CliDocumentKind(_CONNECTION, ("connection",), _matches_connection, _convert(_CONNECTION, _LINK), shape=_LINK),
    CliDocumentKind(
        _DATASTORE,
        ("azureblob", "azurefile", "azuredatalakegen1", "azuredatalakegen2", "onelake", "hdfs"),
        _matches_datastore,
        _convert(_DATASTORE, _STORE),
        shape=_STORE,
    ),
    CliDocumentKind(
        _REGISTRY, ("registry",), _matches_registry, _convert(_REGISTRY, _SHARED), in_workspace=False, shape=_SHARED
    ),
)
