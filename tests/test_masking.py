"""Masking: secrets never reach a report, and what people must read does."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import re2
import yaml
from hypothesis import given
from hypothesis import strategies as st

from policyeng.redaction import (
    MASK,
    SHAPES,
    VALUE_EXPECTED,
    VALUE_FOUND,
    SecretRule,
    has_secret_shape,
    masked,
    masked_message,
    names_secret,
)
from tests.product_patterns import example

ROOT = Path(__file__).parent.parent
_DATA = {".json", ".yaml"}
#: The policies whose cases have what looks like a secret.
_WITH_SECRETS = {"plain_secrets", "package_sources", "full_logs"}
STORAGE_KEY = base64.b64encode(bytes(range(64))).decode()
JWT = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
ARM_ID = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg/providers/Microsoft.KeyVault/vaults/kv"
SSH_KEY = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7" + "Zx9/" * 90 + " azureuser@host"
LONG_SSH_KEY = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTY" + "A" * 72 + "="


@pytest.mark.parametrize(
    "name",
    [
        "password", "adminPassword", "administratorLoginPassword", "ADMIN_PASSWORD", "db-password", "passwd",
        "passphrase",
        "secret", "clientSecret", "secretValue", "client_secret", "token", "sasToken", "accessToken", "refresh_token",
        "accountKey", "storageAccountKey", "connectionString", "AzureWebJobsConnectionString", "apiKey", "API_KEY",
        "primaryKey", "secondaryKey", "privateKey", "sshPrivateKey", "sharedKey", "instrumentationKey", "key1", "key2",
        "credentials", "secrets", "dbPwd", "pwd", "pat", "sas", "accountSas", "sasUri", "webhookUrl", "secureValue",
        "password2", "passwordBase64", "pass", "DB_PASS", "encryptionKey", "authorization", "Proxy-Authorization",
        "licenseKey", "sessionKey", "serviceKey", "decryption_key", "passcode", "cookie", "idJwt", "kubeconfig",
        "accessKey", "storageKey", "masterKey", "signingKey", "functionKey", "hostKey", "authKey", "clientKey",
        "subscription-key", "adminKey", "queryKey",
    ],
)  # fmt: skip
def test_names_of_secrets(name: str) -> None:
    """Text under such a name is masked: as the last segment of the path, as a key, and anywhere below it."""
    assert masked("hunter2", f"/properties/{name}") == MASK
    assert masked("hunter2", f"workspace:/properties/{name}") == MASK
    assert masked(["hunter2"], f"/properties/{name}/0") == [MASK]
    assert masked({"a": [{name: "hunter2"}]}) == {"a": [{name: MASK}]}
    assert masked({name: {"inner": ["hunter2"]}}) == {name: {"inner": [MASK]}}


@pytest.mark.parametrize(
    "name",
    [
        "keyVault", "keyVaultId", "keyVaultArmId", "keyVaultUri", "keyIdentifier", "publicKey", "sshPublicKey",
        "adminUserSshPublicKey", "disableLocalAuth", "identityType", "authMode", "secretName", "secretUri",
        "tokenEndpoint",
        "passwordPolicy", "credentialsType", "secretsType", "allowSharedKeyAccess", "partitionKey", "keyName", "compat",
        "path", "kansas", "key", "keySource", "customerManagedKey", "primaryUserAssignedIdentity", "patch",
    ],
)  # fmt: skip
def test_names_that_are_no_secrets(name: str) -> None:
    """Names that describe or point are read as they are, in a path and as a key."""
    assert masked("AMLToken", f"/properties/{name}") == "AMLToken"
    assert masked({name: "AMLToken"}) == {name: "AMLToken"}


@pytest.mark.parametrize(
    "secret",
    [
        STORAGE_KEY,
        f"DefaultEndpointsProtocol=https;AccountName=acct;AccountKey={STORAGE_KEY};EndpointSuffix=core.windows.net",
        "AccountKey = abc",
        "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=abcdef=",
        "Server=tcp:db;User ID=sa;Password=hunter2;",
        "SharedAccessSignature=sv=2022-11-02&sr=c",
        "SharedAccessSignature sr=https%3A%2F%2Fhub&sig=abc&se=1",
        "https://acct.blob.core.windows.net/c?sv=2022-11-02&sig=2Mq%2BAbCdEfGhIjKlMnOp%3D",
        "sig=2MqAbCdEfGhIjKlMnOp",
        JWT,
        f"Authorization: Bearer {JWT}",
        "bearer abcdefghijklmnopqrstuvwxyz",
        "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----",
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        "-----BEGIN RSA PRIVATE KEY-----",
        "git+https://user:hunter2@github.com/org/repo.git",
        "postgres://:hunter2@db/ws",
        "python train.py --db-password hunter2",
        "python train.py --api-key=abc",
        "a" * 52 + "JQQJ99" + "B" * 26,
        "Qx78Q~" + "abcdefghijklmnopqrstuvwxyz_-.~01234567"[:34],
        "ghp_" + "a1B2" * 9,
        "dapi" + "0a" * 16,
        "hf_" + "aB" * 17,
        "password: hunter2",
        '{"user": "sa", "password": "hunter2"}',
        r"{\"clientSecret\": \"abc123def\"}",
        "token: abc123def456",
        "AKIA" + "ABCD2345" * 2,
        "aws_secret_access_key = abcd",
        "xoxb-1234567890-" + "1234567890-abcdef",
        "xapp-1-A0123-456-abc",
        "https://hooks.slack.com/services/T00000000/B00000000/abcdefghijkl",
        "AIza" + "aB3_-" * 7,
        "sk-proj-" + "aB3_-" * 8,
        "sk-" + "aB3d" * 12,
        "sk-ant-api03-" + "aB3_-" * 8,
        "glpat-" + "aB3_-" * 4,
        "npm_" + "aB3d" * 9,
        "pypi-AgEIcHlwaS5vcmc" + "aB3_-" * 12,
        "sk_live_" + "aB3d" * 6,
        "SG." + "aB3_-" * 4 + "ab." + "aB3_-" * 8,
        "mysql -u root -phunter2 db",
        "docker login registry -u me -p hunter2",
        "curl -u me:hunter2 https://host/",
        "Authorization: Basic bWU6aHVudGVyMg==",
        "https://app.azurewebsites.net/api/f?code=" + "aB3d" * 13,
    ],
)
def test_shapes_of_secrets(secret: str) -> None:
    """A text that looks like a secret is masked wherever it is."""
    assert masked(secret, "/properties/description") == MASK
    assert masked({"command": [secret]}) == {"command": [MASK]}


def _signs(count: int, alphabet: str = "aB3dE5fG7hJ9kL2m") -> str:
    """Letters and digits as tokens have them."""
    return (alphabet * count)[:count]


def _hex(count: int) -> str:
    return _signs(count, "0a1b2c3d4e5f6789")


_KEYS = [
    *("account", "api", "access", "shared", "sharedaccess", "primary", "secondary", "encryption", "subscription"),
    *("master", "signing", "license"),
]
_OPTIONS = ("password", "secret", "token", "api-key", "access-key", "account-key", "db-password", "the-client-secret")
_LOGINS = ("mysql", "mysqldump", "mysqladmin", "mariadb", "sshpass", "docker  login", "az login")
_BEFORE = ("", "client", "access", "refresh", "api", "auth", "sas", "my_")
_TOKENS = [
    *(f"gh{kind}_{_signs(36)}" for kind in "pousr"), f"github_pat_{_signs(22)}_{_signs(59)}",
    *(f"gl{kind}-{_signs(20)}" for kind in ("pat", "ptt", "dt", "rt", "cbt", "soat", "ft", "agent", "oas", "imt")),
    f"dapi{_hex(32)}", f"hf_{_signs(34, 'aBcD')}", f"api_org_{_signs(34, 'aBcD')}",
    *(f"{start}{_signs(16, 'AB23')}" for start in ("AKIA", "ASIA", "ABIA", "ACCA")), f"ABSK{_signs(109)}",
    f"bedrock-api-key-{_signs(28)}", f"AIza{_signs(35)}", f"ya29.{_signs(40)}", f"GOCSPX-{_signs(28)}",
    f"xoxe.xoxp-1-{_signs(160)}", f"xoxb-{_signs(10)}", f"xapp-1-{_signs(11)}-0123456789012-{_hex(64)}",
    *(f"hooks.slack.com/{kind}/T0000000000/B000000000/{_signs(24)}" for kind in ("services", "workflows", "triggers")),
    f"https://contoso.webhook.office.com/webhookb2/{_hex(8)}-{_hex(4)}-{_hex(4)}",
    *(f"https://{host}.com/api/webhooks/123456789012345678/{_signs(68)}" for host in ("discord", "discordapp")),
    *(f"sk-{kind}-{_signs(40)}" for kind in ("proj", "svcacct", "admin", "ant-api03", "or-v1")), f"sk-{_signs(32)}",
    f"sk_{_signs(20)}T3BlbkFJ{_signs(20)}", f"pplx-{_signs(48)}", f"r8_{_signs(37)}", f"nvapi-{_signs(64)}",
    f"gsk_{_signs(52)}", *(f"{kind}k_{stage}_{_signs(24)}" for kind in "sr" for stage in ("live", "test", "prod")),
    f"SG.{_signs(22)}.{_signs(43)}", f"npm_{_signs(36)}", f"pypi-AgEIcHlwaS5vcmc{_signs(50)}", f"rubygems_{_hex(48)}",
    f"CLOJARS_{_hex(60)}", f"AKCp{_signs(69)}", f"cmVmd{_signs(59)}", f"hvs.{_signs(90)}", f"hvb.{_signs(138)}",
    f"{_signs(14)}.atlasv1.{_signs(60)}", f"glc_{_signs(32)}", f"glsa_{_signs(32)}_{_hex(8)}",
    *(f"do{kind}_v1_{_hex(64)}" for kind in "opr"), f"dckr_pat_{_signs(27)}", f"dckr_oat_{_signs(32)}",
    f"LTAI{_signs(20)}", *(f"shp{kind}_{_hex(32)}" for kind in ("at", "ca", "pa", "ss")), f"12345678:AA{_signs(33)}",
    f"1234567890:AA{_signs(32)}", f"pul-{_hex(40)}", f"dt0c01.{_signs(24)}.{_signs(64)}", f"dp.pt.{_signs(43)}",
    f"PMAK-{_hex(24)}-{_hex(34)}", *(f"pscale_{kind}_{_signs(32)}" for kind in ("tkn", "oauth", "pw")),
    f"sntrys_eyJ{_signs(20)}", f"sntryu_{_hex(64)}", f"ops_eyJ{_signs(250)}",
    f"AGE-SECRET-KEY-1{_signs(58, 'QPZRY9X8')}", f"lin_api_{_signs(40)}",
    f"ntn_{_signs(11, '0123456789')}{_signs(35)}", f"sha256~{_signs(43)}", f"HRKU-AA{_signs(58)}",
    f"tskey-auth-{_signs(17)}-{_signs(32)}", f"fio-u-{_signs(64)}", f"{_signs(52)}JQQJ99{_signs(26)}",
    f"{_signs(52)}JQQJ9D{_signs(26)}", f"abc8Q~{_signs(31)}", f"abc8Q~{_signs(34)}",
    f"eyJ{_signs(17)}.eyJ{_signs(20)}",
]  # fmt: skip
_ASSIGNED = [
    *(f"{name}=x" for name in ("passwd", "password", "passphrase", "pwd", "PGPASSWORD", "db_pass", "secret", "token")),
    *(f"{name}{sign}key=x" for name in _KEYS for sign in ("", "-", "_", " ")), "my_password=x", "PWD  =  x",
    "'token'=x", *(f"{name}: x" for name in ("passwd", "password", "passphrase", "pwd", "pgpassword", "db_pass")),
    "my_pwd:x",
    *(f"{name}{kind}: abc1defg" for name in _BEFORE for kind in ("secret", "token")),
    *(f"{name}_key: abc1defg" for name in _KEYS), r"{\"token\": \"abc1defg\"}", "{'api-key': 'abc1defg'}",
    *(f"run --{name}{sign}x" for name in _OPTIONS for sign in " ="),
    *(f"{name} -u me -p x" for name in _LOGINS),
    "sshpass -px ssh host",
    *(f"curl {flag}me:x https://host" for flag in ("-u ", "-u", "--user ", "--user=", "-s -u '")),
    "sharedaccesssignature = x", "SharedAccessSignature sr=x", f"sig={_signs(16)}", f"a&SIG={_signs(16)}",
    f"a;sig={_signs(16)}", f"a?code={_signs(40)}", f"a&code={_signs(40)}", f"bearer {_signs(20)}",
    *(f"Authorization: {kind} {_signs(6)}" for kind in ("basic", "bearer", "digest", "token", "apikey", "sharedkey")),
    f"authorization=Basic {_signs(6)}", f'{{"Authorization": "Basic {_signs(6)}"}}',
    rf"{{\"Authorization\": \"Basic {_signs(6)}\"}}",
    *(f"-----BEGIN {kind}PRIVATE KEY-----" for kind in ("", "EC ", "ENCRYPTED ", "PGP ", "SSH2 ENCRYPTED ")),
    "redis://:x@host", "amqps://me:x@host/vhost", f"{_signs(86)}==", f'"{_signs(86)}=="',
]  # fmt: skip


@pytest.mark.attack
@pytest.mark.parametrize("secret", _TOKENS + _ASSIGNED)
def test_every_form_of_a_secret_is_masked(secret: str) -> None:
    """As those who issue it make it, alone and in a sentence."""
    assert masked(secret) == MASK
    assert masked(f"it is `{secret}` now") == MASK
    assert MASK in masked_message(f"it is `{secret}` now")


ORDINARY = [
    ARM_ID, "Standard_DS3_v2", "Standard_NC24ads_A100_v4", "b24988ac-6180-42a0-ab88-20f7382dd24c", "PT30M", "P1DT12H",
    "2026-06-01T00:00:00Z", SSH_KEY, LONG_SSH_KEY, "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + "A" * 43, "AMLToken",
    "AccountKey", "SharedAccessSignature", "Password", "https://kv.vault.azure.net/keys/cmk/0123456789abcdef0123456789abcdef",
    "https://acct.blob.core.windows.net/container/path?restype=container", "mcr.microsoft.com/azureml/base:20260101.v1",
    "azureml://registries/azureml/models/m/versions/1", "user@example.com", "10.0.0.0/16", "2001:db8::1",
    "sha256:" + "0a" * 32,
    "-----BEGIN PUBLIC KEY-----", "-----BEGIN CERTIFICATE-----", "python train.py --epochs 3 --token-limit 5",
    "Microsoft.MachineLearningServices/workspaces/listKeys/action", "", "***", "the password is not rotated", "eyJ",
    "A" * 88, "southeastasia", "task-and-disk-of-the-risk-team-in-westeurope", "my_test_dataset",
    "keyvault: kv-ml-prod",
    "docker run --user 1000:1000 -p 8080:80 image", "curl -u me https://host/", "sk-learn-image-for-training",
    "token: required", "the key: none", "https://kv.vault.azure.net/secrets/db-password", "image@sha256:" + "0a" * 32,
    "AKIA is how an id of AWS begins", "hf_", "password", "pip install scikit-learn==1.5.0",
    "ghp_ and gho_ are prefixes",
    "myregistry.azurecr.io/token-service:1.2.3", "user@example.com: owner", "PublicKeyToken=b77a5c561934e089",
]  # fmt: skip


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_never_masked(text: str) -> None:
    """Ids, sizes, durations, digests, addresses, public keys and the names of kinds of secrets are read as they are."""
    assert masked(text, "/properties/value") == text
    assert masked({"actual": [text]}) == {"actual": [text]}


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_every_shape_is_masked(shape: SecretRule) -> None:
    """A text that the pattern matches, in both ways: no shape is lost to the check that precedes all of them."""
    found = example(shape.pattern)

    assert re2.search(shape.pattern, found)
    assert masked(found, "/properties/description") == MASK
    assert MASK in masked_message(f"it is `{found}`")


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("unknown key `x`; did you mean `y`", "unknown key `x`; did you mean `y`"),
        ("`https://me:hunter2@host/x` cannot be read; check it", "`***` cannot be read; check it"),
        ("a `password=hunter2` and a `token=abc`", "a `***` and a `***`"),
        ("curl -u me:hunter2 https://host", "*** https://host"),
        ("run --db-password hunter2 now", "run *** now"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE\nabcd", "***"),
        ("?sig=2MqAbCdEfGhIjKlMnOp&x=1 then", "?*** then"),
        (SSH_KEY, SSH_KEY),
        ("half \ud800 of `password=hunter2`", "half \ud800 of `***`"),
        ("näh `password=hünter2`, dann", "näh `***`, dann"),
    ],
)
def test_in_a_message_only_the_secret_is_masked(message: str, shown: str) -> None:
    """The rest states what is wrong, and where."""
    assert masked_message(message) == shown
    assert masked_message(shown) == shown


@pytest.mark.parametrize("name", ["key", "auth", "signature", "Key"])
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("aB3d" * 6, MASK),
        ("0123456789abcdef0123", MASK),
        ("aB3d" * 6 + "==", MASK),
        ("0123456789abcdef012", "0123456789abcdef012"),
        ("kubernetes.azure.com/scalesetpriority1", "kubernetes.azure.com/scalesetpriority1"),
        ("abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwxyz"),
        ("12345678901234567890", "12345678901234567890"),
        ("AMLToken", "AMLToken"),
    ],
)
def test_under_a_doubtful_name_only_random_text_is_masked(name: str, value: str, shown: str) -> None:
    """`key` names labels, too."""
    assert masked(value, f"/properties/{name}") == shown
    assert masked([value], f"/properties/{name}/0") == [shown]
    assert masked({name: value, "other": value}) == {name: shown, "other": value}
    assert masked({name: [value]}) == {name: [shown]}
    assert masked({name: {"inner": value, "0": value}}) == {name: {"inner": value, "0": value}}


@pytest.mark.slow
def test_the_files_of_the_repository_read_as_before() -> None:
    """Samples and the values in the cases of policies: nothing of them is masked that is no secret."""
    data = (path for folder in ("samples", "policies") for path in (ROOT / folder).rglob("*") if path.suffix in _DATA)
    files = [path for path in data if path.parent.name not in _WITH_SECRETS]
    hidden = {
        (text, masked_message(text))
        for path in files
        for document in yaml.load_all(path.read_text("utf-8"), yaml.CSafeLoader)
        for text in _texts(document)
        if masked(text) != text or masked_message(text) != text
    }
    assert len(files) > 100
    assert hidden == set()


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, below in value.items():
            yield from (str(key), *_texts(below))
    elif isinstance(value, list):
        for below in value:
            yield from _texts(below)


def test_only_text_is_masked() -> None:
    """Numbers, booleans, null and empty text have nothing that must be hidden."""
    under = {"password": None, "hasPassword": True, "maxTokens": 4096, "token": "", "secrets": [1.5, False]}
    assert masked(under) == under


def test_what_describes_an_object_of_secrets_is_read() -> None:
    """A datastore's credentials: the kinds and ids stay, the secrets go."""
    described = {
        "credentialsType": "ServicePrincipal",
        "clientId": "b24988ac-6180-42a0-ab88-20f7382dd24c",
        "tenantId": "72f988bf-86f1-41af-91ab-2d7cd011db47",
        "authorityUrl": "https://login.microsoftonline.com",
        "tokenUri": "https://login.microsoftonline.com",
        "keyIdentifier": "cmk",
        "userName": "sa",
        "version": "1",
        "mode": "x",
    }
    secrets = {"secretsType": "ServicePrincipal", "clientSecret": "hunter2", "certificate": "MIIE", "key": "abc"}
    hidden = {"secretsType": "ServicePrincipal", "clientSecret": MASK, "certificate": MASK, "key": MASK}
    assert masked({"credentials": {**described, "secrets": secrets}}) == {
        "credentials": {**described, "secrets": hidden}
    }


@pytest.mark.parametrize("kind", ["ssh-rsa", "ecdsa-sha2-nistp256", "sk-ssh-ed25519@openssh.com"])
def test_a_public_key_is_read_unless_a_secret_follows(kind: str) -> None:
    """Also one that is as long as the key of a storage account."""
    key = f"{kind} AAAA{_signs(82)}=="

    for text in (key, f"{key} me@host\n"):
        assert masked(text) == masked_message(text) == text
    assert masked(f"{key} password=hunter2") == MASK
    assert "hunter2" not in masked_message(f"{key} password=hunter2")


def test_an_id_under_the_name_of_a_secret_is_read() -> None:
    """Where the secret is kept is no secret; ids are the same in any case."""
    for text in (ARM_ID, ARM_ID.upper()):
        assert masked({"secret": text}) == {"secret": text}


def test_what_findings_state_about_a_secret_is_read() -> None:
    """The policy about secrets writes it at the place of the secret."""
    for text in (VALUE_FOUND, VALUE_EXPECTED):
        assert masked(text, "/properties/password") == text


def test_tuples_and_text_that_cannot_be_encoded_are_masked() -> None:
    """A value of Python has the one, and JSON may have the other."""
    assert masked({"password": ("hunter2",)}) == {"password": [MASK]}
    assert masked("half \ud800 of password=hunter2") == MASK


@pytest.mark.parametrize("name_key", ["name", "key"])
def test_pairs_of_name_and_value(name_key: str) -> None:
    """Environment variables as lists of pairs: the name decides about the value."""
    secret = {name_key: "DB_PASSWORD", "value": "hunter2", "ref": "x"}
    plain = {name_key: "EPOCHS", "value": "3", "secureValue": "hunter2"}
    assert masked([secret, plain]) == [{**secret, "value": MASK}, {**plain, "secureValue": MASK}]


def test_segments_of_the_path_are_decoded() -> None:
    """`~1` and `~0` are JSON Pointer's escapes."""
    assert masked("x", "/tags/db~1password") == MASK
    assert masked("x", "/tags/password~0/name") == "x"
    assert masked("x", "/pass~1word") == masked("x", "/pass~0word") == MASK


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from([*ORDINARY, STORAGE_KEY, JWT]),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(
            st.text() | st.sampled_from(["password", "secrets", "name", "value", "type", "0"]), below, max_size=3
        )
    ),
    max_leaves=10,
)
paths = st.lists(st.sampled_from(["properties", "secrets", "0", "id", "apiKey", "a~1b"]) | st.text()).map(
    lambda segments: "".join(f"/{segment}" for segment in segments)
)


@given(json_values, paths)
def test_masking_is_deterministic_idempotent_and_changes_nothing_else(value: object, path: str) -> None:
    """Twice is once, the argument is left alone, and only texts differ: by being the mask."""
    before = copy.deepcopy(value)
    once = masked(value, path)
    assert value == before
    assert masked(value, path) == once
    assert masked(once, path) == once
    assert _same_but_for_masks(value, once)


def _same_but_for_masks(value: object, shown: object) -> bool:
    if isinstance(value, dict) and isinstance(shown, dict):
        return list(value) == list(shown) and all(_same_but_for_masks(value[key], shown[key]) for key in value)
    if isinstance(value, list) and isinstance(shown, list):
        return len(value) == len(shown) and all(map(_same_but_for_masks, value, shown))
    return value == shown or (isinstance(value, str) and shown == MASK)


@given(json_values, st.sampled_from(["password", "clientSecret", "sasToken", "AccountKey"]))
def test_no_text_below_the_name_of_a_secret_is_left(value: object, name: str) -> None:
    """Whatever the value, only what describes or points is left of it."""
    assert "hunter2-of-mine" not in json.dumps(masked({name: ["hunter2-of-mine", {"inner": "hunter2-of-mine"}, value]}))


guids = st.uuids().map(str)
sizes = st.from_regex(r"\AStandard_[A-Z]{1,3}[0-9]{1,3}[a-z]{0,4}(_v[1-9])?\Z")
durations = st.from_regex(r"\AP([1-9][0-9]?D)?T[1-9][0-9]?[HMS]\Z")
arm_ids = st.tuples(guids, st.from_regex(r"\A[A-Za-z0-9_.()-]{1,90}\Z"), st.from_regex(r"\A[A-Za-z0-9-]{1,24}\Z")).map(
    lambda parts: f"/subscriptions/{parts[0]}/resourceGroups/{parts[1]}/providers/Microsoft.KeyVault/vaults/{parts[2]}"
)
ssh_keys = st.binary(min_size=32, max_size=400).map(
    lambda blob: f"ssh-rsa AAAAB3NzaC1yc2{base64.b64encode(blob).decode()}"
)


@given(guids | sizes | durations | arm_ids | ssh_keys)
def test_ids_sizes_durations_and_public_keys_are_never_masked(text: str) -> None:
    """Any GUID, VM size, ISO 8601 duration, ARM id or SSH public key is read as it is."""
    assert masked(text, "/properties/actual") == text


@given(st.binary(min_size=64, max_size=64))
def test_every_key_of_64_bytes_is_masked(key: bytes) -> None:
    """A storage account's key is masked whatever its bytes."""
    assert masked(base64.b64encode(key).decode(), "/properties/description") == MASK


@pytest.mark.parametrize(
    ("name", "text", "by_shape", "by_name"),
    [
        ("LOG_LEVEL", "debug", False, False),
        ("DB_PASSWORD", "hunter22", False, True),
        ("STORE", "AccountName=st;AccountKey=c2VjcmV0", True, False),
        ("key", "a1B2c3D4e5F6g7H8i9J0k1", False, True),
        ("key", "region", False, False),
        ("PUBLIC_KEY_URL", "https://contoso.example", False, False),
    ],
)
def test_shapes_and_names_are_distinguished(name: str, text: str, by_shape: bool, by_name: bool) -> None:
    """A policy treats a name that only may be one of secrets otherwise than a shape."""
    assert (has_secret_shape(text), names_secret(name, text)) == (by_shape, by_name)
