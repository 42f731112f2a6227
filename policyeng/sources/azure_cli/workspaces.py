"""Workspaces, hubs, projects and feature stores, with their datastores and connections, and registries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec.structs import replace

from policyeng.models import JsonObject, Problem, lowered
from policyeng.sources.arm_resource import stands_for_value
from policyeng.sources.azure_cli.converter import (
    IDENTITY,
    IDENTITY_PRINTED,
    PROVIDER,
    CliDocumentKind,
    DocumentTables,
    Lossy,
    Sent,
    build_id,
    convert_document,
    convert_list,
    mapping,
    name,
    region,
    schema_of,
    tags,
    unplaced,
    word,
)
from policyeng.sources.field_mapping import FieldMapping, UnfitError, boolean, mapped, text
from policyeng.sources.parsed import UNKNOWN_SCOPE, Placed, Surroundings

_EXPECTED = "a list of rules, each with `name`, `type` and `destination`"
_RULE = (
    FieldMapping("/type", "/type", word("FQDN", "PrivateEndpoint", "ServiceTag")),
    FieldMapping("/category", "/category", word("Required", "Recommended", "UserDefined", "Dependency")),
    FieldMapping("/status", "/status", text),
    FieldMapping("/fqdns", "/fqdns", convert_list),
    FieldMapping("/parent_rule_names", "/parentRuleNames", convert_list),
)
_DESTINATION = (
    FieldMapping("/destination/service_resource_id", "/destination/serviceResourceId", text),
    FieldMapping("/destination/subresource_target", "/destination/subresourceTarget", text),
    FieldMapping("/destination/spark_enabled", "/destination/sparkEnabled", boolean),
    FieldMapping("/destination/service_tag", "/destination/serviceTag", text),
    FieldMapping("/destination/protocol", "/destination/protocol", text),
    FieldMapping("/destination/port_ranges", "/destination/portRanges"),
    FieldMapping("/destination/address_prefixes", "/destination/addressPrefixes", convert_list),
)


def outbound_rules(value: object) -> object:
    """Return the rules by name, in ARM shape.

    Raises:
        UnfitError: the value is not a list of rules.
    """
    # The SDK prints an empty object if there are no rules.
    entries = convert_list(value) if value != {} else []
    return dict(_find_named(entry) for entry in entries) if isinstance(entries, list) else {}


def _find_named(rule: object) -> tuple[str, JsonObject]:
    if not isinstance(rule, dict) or not isinstance(rule.get("name"), str):
        raise UnfitError(_EXPECTED)
    direct = isinstance(rule.get("destination"), str)
    rows = (*_RULE, FieldMapping("/destination", "/destination", text)) if direct else (*_RULE, *_DESTINATION)
    found = mapped(rows, rule, "")
    if found.unreadable:
        raise UnfitError(f"{_EXPECTED}: {next(iter(found.unreadable.values()))}")
    return rule["name"], {"category": "UserDefined", **found.resource}


ARM_TYPE = f"{PROVIDER}/workspaces"
_P = "/properties"
_FEATURE_STORE_SETTINGS = f"{_P}/featureStoreSettings"
_WHERE = "the file does not name the subscription and resource group to deploy to; pass `--scope`"
_KIND = word("Default", "Hub", "Project", "FeatureStore")

_TABLE = (
    FieldMapping("/name", "/name", name),
    FieldMapping("/kind", "/kind", _KIND),
    FieldMapping("/location", "/location", region),
    FieldMapping("/resource_group", ""),
    FieldMapping("/tags", "/tags", tags),
    *IDENTITY,
    FieldMapping("/display_name", f"{_P}/friendlyName", text),
    FieldMapping("/description", f"{_P}/description", text),
    FieldMapping("/discovery_url", f"{_P}/discoveryUrl", text),
    FieldMapping("/hbi_workspace", f"{_P}/hbiWorkspace", boolean),
    FieldMapping("/storage_account", f"{_P}/storageAccount", text),
    FieldMapping("/container_registry", f"{_P}/containerRegistry", text),
    FieldMapping("/key_vault", f"{_P}/keyVault", text),
    FieldMapping("/application_insights", f"{_P}/applicationInsights", text),
    FieldMapping("/customer_managed_key/key_vault", f"{_P}/encryption/keyVaultProperties/keyVaultArmId", text),
    FieldMapping("/customer_managed_key/key_uri", f"{_P}/encryption/keyVaultProperties/keyIdentifier", text),
    FieldMapping("/customer_managed_key/cosmosdb_id", f"{_P}/encryption/cosmosDbResourceId", text),
    FieldMapping("/customer_managed_key/storage_id", f"{_P}/encryption/storageAccountResourceId", text),
    FieldMapping("/customer_managed_key/search_id", f"{_P}/encryption/searchAccountResourceId", text),
    FieldMapping("/image_build_compute", f"{_P}/imageBuildCompute", text),
    FieldMapping("/public_network_access", f"{_P}/publicNetworkAccess", word("Enabled", "Disabled")),
    FieldMapping("/network_acls/default_action", f"{_P}/networkAcls/defaultAction", word("Allow", "Deny")),
    FieldMapping("/network_acls/ip_rules", f"{_P}/networkAcls/ipRules", convert_list),
    FieldMapping("/system_datastores_auth_mode", f"{_P}/systemDatastoresAuthMode", text),
    FieldMapping("/primary_user_assigned_identity", f"{_P}/primaryUserAssignedIdentity", text),
    FieldMapping("/workspace_hub", f"{_P}/hubResourceId", text),
    FieldMapping("/hub_id", f"{_P}/hubResourceId", text),
    FieldMapping(
        "/managed_network/isolation_mode",
        f"{_P}/managedNetwork/isolationMode",
        word("Disabled", "AllowInternetOutbound", "AllowOnlyApprovedOutbound"),
    ),
    FieldMapping("/managed_network/outbound_rules", f"{_P}/managedNetwork/outboundRules", outbound_rules),
    FieldMapping("/managed_network/firewall_sku", f"{_P}/managedNetwork/firewallSku", word("Standard", "Basic")),
    FieldMapping("/provision_network_now", f"{_P}/provisionNetworkNow", boolean),
    FieldMapping("/enable_data_isolation", f"{_P}/enableDataIsolation", boolean),
    FieldMapping("/allow_roleassignment_on_rg", f"{_P}/allowRoleAssignmentOnRG", boolean),
    FieldMapping(
        "/serverless_compute/custom_subnet", f"{_P}/serverlessComputeSettings/serverlessComputeCustomSubnet", text
    ),
    FieldMapping(
        "/serverless_compute/no_public_ip", f"{_P}/serverlessComputeSettings/serverlessComputeNoPublicIP", boolean
    ),
)
_PRINTED = (
    *IDENTITY_PRINTED,
    FieldMapping("/mlflow_tracking_uri", f"{_P}/mlFlowTrackingUri", text),
    FieldMapping("/workspace_id", f"{_P}/workspaceId", text),
    FieldMapping("/provisioning_state", f"{_P}/provisioningState", text),
    FieldMapping("/sku", "/sku/name", text),
    FieldMapping("/managed_network/status/status", f"{_P}/managedNetwork/status/status", text),
    FieldMapping("/managed_network/status/spark_ready", f"{_P}/managedNetwork/status/sparkReady", boolean),
    FieldMapping("/managed_network/network_id", f"{_P}/managedNetwork/networkId", text),
    FieldMapping("/associated_workspaces", f"{_P}/associatedWorkspaces", convert_list),
    # The name before 2022.
    FieldMapping("/friendly_name", f"{_P}/friendlyName", text),
)
_ENCRYPTED = Sent(f"{_P}/encryption/status", "Enabled", within=f"{_P}/encryption", printed=True)
_ANY_KIND = (
    Sent("/identity/type", "SystemAssigned"),
    Sent(f"{_P}/publicNetworkAccess", "Enabled"),
    Sent(f"{_P}/enableDataIsolation", False),
    Sent(
        f"{_P}/serverlessComputeSettings/serverlessComputeNoPublicIP",
        False,
        within=f"{_P}/serverlessComputeSettings",
    ),
)
_WHOLE = (
    *_ANY_KIND,
    _ENCRYPTED,
    Sent(f"{_P}/encryption/status", "Disabled"),
    Sent(f"{_P}/hbiWorkspace", False),
    Sent(f"{_P}/managedNetwork/isolationMode", "Disabled"),
    Sent(f"{_P}/managedNetwork/firewallSku", "Standard", within=f"{_P}/managedNetwork"),
    Sent(f"{_P}/allowRoleAssignmentOnRG", True),
)
_ALWAYS = ("location", "discovery_url", "hbi_workspace", "public_network_access")

# An output does not distinguish a feature store from a plain workspace; policies treat them the same.
_WORKSPACE = DocumentTables(_TABLE, _PRINTED, (*_WHOLE, Sent("/kind", "Default")), always=_ALWAYS)
_HUB = DocumentTables(
    (*_TABLE, FieldMapping("/default_resource_group", f"{_P}/workspaceHubConfig/defaultWorkspaceResourceGroup", text)),
    _PRINTED,
    (*_WHOLE, Sent("/kind", "Hub", printed=True)),
    always=_ALWAYS,
)
_PROJECT = DocumentTables(
    _TABLE,
    _PRINTED,
    # `workspace_project.json` has these and no others.
    (*_ANY_KIND, _ENCRYPTED, Sent("/kind", "Project", printed=True)),
    always=_ALWAYS,
)
_FEATURE_STORE = DocumentTables(
    (
        *_TABLE,
        FieldMapping(
            "/compute_runtime/spark_runtime_version",
            f"{_FEATURE_STORE_SETTINGS}/computeRuntime/sparkRuntimeVersion",
            text,
        ),
        FieldMapping("/offline_store", ""),
        FieldMapping("/online_store", ""),
        FieldMapping("/materialization_identity", ""),
    ),
    _PRINTED,
    (*_WHOLE, Sent("/kind", "FeatureStore", printed=True), Sent(f"{_P}/systemDatastoresAuthMode", "identity")),
    always=_ALWAYS,
)

_MARKS = frozenset(
    {
        "customer_managed_key",
        "discovery_url",
        "enable_data_isolation",
        "hbi_workspace",
        "image_build_compute",
        "managed_network",
        "mlflow_tracking_uri",
        "provision_network_now",
        "serverless_compute",
        "system_datastores_auth_mode",
    }
)
_UPDATED = frozenset({"image_build_compute", "managed_network", "public_network_access"})
_OF_PROJECTS = frozenset({"hub_id", "workspace_hub"})
_OF_HUBS = frozenset({"associated_workspaces", "default_resource_group"})
_OF_FEATURE_STORES = frozenset({"materialization_identity", "offline_store", "online_store"})
_SCHEMAS = ("project", "hub", "featurestore", "workspace")
_OF_OTHERS = frozenset({"apiVersion", "auth_mode", "endpoint_name", "replication_locations"})


def _convert(shape: DocumentTables) -> Callable[[JsonObject, str, Surroundings], Iterator[Placed | Problem]]:
    def bring(document: JsonObject, pointer: str, around: Surroundings) -> Iterator[Placed | Problem]:
        arm_id = build_id(document, ARM_TYPE, _in_its_group(document, around))
        resource: JsonObject = {"id": arm_id, "name": arm_id.rpartition("/")[2], "type": ARM_TYPE}
        given = convert_document(shape, resource, document, pointer, {})
        yield given._replace(unreadable={**given.unreadable, **_unplaced(arm_id)})

    return bring


def _in_its_group(document: JsonObject, around: Surroundings) -> Surroundings:
    """Return the surroundings with the resource group that the file names, unless the user names one."""
    group = document.get("resource_group")
    if around.scope != UNKNOWN_SCOPE and not around.scope.endswith("/{resource-group}"):
        return around
    if not isinstance(group, str) or not group or "/" in group:
        return around
    return replace(around, scope=f"{around.scope.rpartition('/')[0]}/{group}")


def _unplaced(arm_id: str) -> dict[str, str]:
    """Return why the id is unreadable; in a known group, the subscription can still be unknown."""
    unknown = arm_id.startswith(UNKNOWN_SCOPE.partition("/resourceGroups/")[0]) or "/{resource-group}/" in arm_id
    return {"/id": _WHERE} if unknown else unplaced(arm_id)


def _matches(marks: frozenset[str], kind: str) -> Callable[[JsonObject], bool]:
    """Return a check for a kind of workspace by `$schema`, keys or `kind`."""

    def takes(document: JsonObject) -> bool:
        schema, stated = schema_of(document), document.get("kind")
        if schema == kind:
            return True
        if "name" not in document or document.keys() & _OF_OTHERS:
            return False
        is_kind = isinstance(stated, str) and lowered(stated) == kind
        return bool((is_kind and (schema in _SCHEMAS or document.keys() & _MARKS)) or document.keys() & marks)

    return takes


def _is_update(document: JsonObject) -> bool:
    """Check for the input of `az ml workspace update --file`, which has no name, such as a managed network."""
    keys = document.keys() - {"$schema"}
    return bool(keys) and keys <= _UPDATED and schema_of(document) is None


def _yield_nothing(*_: object) -> Iterator[Placed | Problem]:
    return iter(())


_UPDATE = CliDocumentKind(
    ARM_TYPE,
    (),
    _is_update,
    _yield_nothing,
    in_workspace=False,
    nothing="an update of a workspace, which contains only the changes; provide the complete workspace",
)

KINDS: tuple[CliDocumentKind, ...] = (
    _UPDATE,
    *(
        CliDocumentKind(ARM_TYPE, (schema,), _matches(marks, schema), _convert(shape), in_workspace=False, shape=shape)
        for schema, marks, shape in (
            ("project", _OF_PROJECTS, _PROJECT),
            ("hub", _OF_HUBS, _HUB),
            ("featurestore", _OF_FEATURE_STORES, _FEATURE_STORE),
            ("workspace", _MARKS, _WORKSPACE),
        )
    ),
)


_DATASTORE = f"{PROVIDER}/workspaces/datastores"
_CONNECTION = f"{PROVIDER}/workspaces/connections"
_AUTH_TYPE = f"{_P}/authType"
_REGISTRY = f"{PROVIDER}/registries"

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
#: The types of connections with `api_key`, which use Microsoft Entra ID without it, and whether they may be without it.
#: Source: `connection_subtypes.py` and `ApiOrAadConnection` of azure-ai-ml 1.35.2.
_WITH_API_KEY: Mapping[str, bool] = {
    "azure_ai_search": True,
    "azure_ai_services": True,
    "azure_content_safety": True,
    "azure_open_ai": True,
    "azure_speech_services": True,
    "api_key": False,
    "open_ai": False,
    "serp": False,
    "serverless": False,
}
#: The types of connections that use Microsoft Entra ID if the file has no credentials; the others use none.
_OF_STORES = frozenset({"azure_blob", "azure_data_lake_gen2", "azure_one_lake"})
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
            _AUTH_TYPE,
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
        *(
            FieldMapping(f"/credentials/{key}", f"{_P}/credentials/{member}", text)
            for key, member in (
                ("access_key_id", "accessKeyId"),
                ("account_key", "key"),
                ("client_id", "clientId"),
                ("client_secret", "clientSecret"),
                ("key", "key"),
                ("password", "password"),
                ("pat", "pat"),
                ("resource_id", "resourceId"),
                ("sas_token", "sas"),
                ("secret_access_key", "secretAccessKey"),
                ("tenant_id", "tenantId"),
                ("username", "username"),
            )
        ),
        FieldMapping("/api_key", f"{_P}/credentials/key", text),
        FieldMapping("/is_shared", f"{_P}/isSharedToAll", boolean),
        FieldMapping("/metadata", f"{_P}/metadata"),
        *(
            FieldMapping(f"/{key}", "")
            for key in (
                "account_name",
                "ai_services_resource_id",
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


def _with_authentication(shape: DocumentTables, document: JsonObject) -> DocumentTables:
    """Return the tables of a connection with the `authType` that the CLI sends for it."""
    kind, stated = document.get("type"), document.get("credentials")
    folded = lowered(kind) if isinstance(kind, str) else ""
    auth_type = ""
    if folded not in _WITH_API_KEY:
        auth_type = "" if stated or folded not in _CATEGORIES else "AAD" if folded in _OF_STORES else "None"
    elif document.get("api_key"):
        auth_type = "ApiKey"
    elif _WITH_API_KEY[folded] and not _has_api_key(stated):
        auth_type = "AAD"
    if not auth_type or "id" in document:
        return shape
    # A type of credentials that these connections do not have is ignored.
    table = tuple(row for row in shape.table if row.target != _AUTH_TYPE)
    return shape._replace(table=table, sent=(*shape.sent, Sent(_AUTH_TYPE, auth_type)))


def _has_api_key(credentials: object) -> bool:
    """Check whether credentials have a key; a type that is not known yet may be that of a key."""
    kind = credentials.get("type") if isinstance(credentials, dict) else None
    return isinstance(kind, str) and (stands_for_value(kind) or lowered(kind).replace("_", "") == "apikey")


def _convert_datastore(
    arm_type: str, shape: DocumentTables
) -> Callable[[JsonObject, str, Surroundings], Iterator[Placed | Problem]]:
    def bring(document: JsonObject, pointer: str, around: Surroundings) -> Iterator[Placed | Problem]:
        arm_id = build_id(document, arm_type, around)
        resource: JsonObject = {"id": arm_id, "name": arm_id.rpartition("/")[2], "type": arm_type}
        tables = _with_authentication(shape, document) if arm_type == _CONNECTION else shape
        given = convert_document(tables, resource, document, pointer, {})
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


DATASTORE_KINDS: tuple[CliDocumentKind, ...] = (
    CliDocumentKind(
        _CONNECTION, ("connection",), _matches_connection, _convert_datastore(_CONNECTION, _LINK), shape=_LINK
    ),
    CliDocumentKind(
        _DATASTORE,
        ("azureblob", "azurefile", "azuredatalakegen1", "azuredatalakegen2", "onelake", "hdfs"),
        _matches_datastore,
        _convert_datastore(_DATASTORE, _STORE),
        shape=_STORE,
    ),
    CliDocumentKind(
        _REGISTRY,
        ("registry",),
        _matches_registry,
        _convert_datastore(_REGISTRY, _SHARED),
        in_workspace=False,
        shape=_SHARED,
    ),
)
