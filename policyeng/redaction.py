"""Mask what looks like a secret before it reaches a report: by its name, or by its own shape.

Only text is masked, and always the whole of it. What merely points to a secret (the id of a vault, a public key) or
describes one (its type, its name) stays, because policies deny on it and people must read it.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from policyeng.later import lazy_pattern

if TYPE_CHECKING:
    import re2


class SecretRule(NamedTuple):
    """One form of secret.

    Attributes:
        name: what is secret.
        mark: a short expression of Python's `re` that finds something in every text of the shape, in linear time. If it
            is without `(?i:`, it is the beginning of a token, and the text needs none of the signs of an assignment.
        pattern: matches the secret, or what begins with it.
    """

    name: str
    mark: str
    pattern: str


#: The end of the name of a secret in an assignment.
_KEY = r"(?:account|api|access|shared|sharedaccess|primary|secondary|encryption|subscription|master|signing|license)"
_NAME_WORD = r"(?:passwd|password|passphrase|pwd|pgpassword|db_pass)"
_ASSIGNED = rf"(?:{_NAME_WORD}|secret|token|{_KEY}[-_ ]?key)"
#: What may be between the name and the value of JSON, YAML or a program, where the JSON may itself be quoted.
_COLON = r"\\?[\"']?\s{0,4}:\s{0,4}\\?[\"']?"

#: Where an assignment to a secret may be.
_MARK = r"(?i:(?:passwd|password|passphrase|pwd|secret|token|key|db_pass)"

SHAPES = (
    SecretRule("assignment", _MARK + r"[\"']?\s{0,4}=)",
          rf"(?i:(?:\b|_){_ASSIGNED}[\"']?\s{{0,4}}=\s{{0,4}}[^\s;])"),
    SecretRule("password after a colon", _MARK + r"\\?[\"']?\s{0,4}:)",
          rf"(?i:(?:\b|_){_NAME_WORD}{_COLON}[^\s\"'\\,;{{}}\[\]])"),
    SecretRule("value with a digit after a colon", _MARK + r"\\?[\"']?\s{0,4}:)",
          rf"(?i:(?:\b|_|client|access|refresh|api|auth|sas)(?:secret|token|{_KEY}[-_ ]?key){_COLON}"
          r"[^\s\"'\\,;/{}\[\]]{0,64}[0-9][^\s\"'\\,;/{}\[\]]{4})"),
    SecretRule("option", r"(?i:(?:password|secret|token|-key)[ =])",
          r"(?i:--(?:[\w-]{1,60}-)?(?:password|secret|token|(?:api|access|account)-key)[ =]\S)"),
    SecretRule("option -p", r"(?i:mysql|mariadb|sshpass|docker\s|az )",
          r"(?i:\b(?:mysql(?:dump|admin)?|mariadb|sshpass|docker\s{1,4}login|az login)\b"
          r"[^\n]{0,200}?\s-p\s{0,4}[^\s-])"),
    SecretRule("user of curl", r"(?i:curl\s)",
          r"(?i:\bcurl\b[^\n]{0,300}?\s(?:-u|--user)[ =]?\s{0,4}[\"']?[^\s:\"']{1,200}:[^\s\"'])"),
    SecretRule("shared access signature", "(?i:sharedaccesssignature)",
          r"(?i:\bsharedaccesssignature(?:\s{0,4}=|\s{1,4}s[a-z]=))"),
    SecretRule("signature in a URL", "(?i:sig=)", r"(?i:(?:^|[?&;`\s\"'])sig=[a-z0-9%+/=_-]{16})"),
    SecretRule("key in the URL of a function", "(?i:code=)", r"[?&]code=[\w%/+-]{40}"),
    SecretRule("bearer token", r"(?i:bearer\s)", r"(?i:\bbearer\s{1,4}[a-z0-9._~+/-]{20})"),
    SecretRule("authorization header", "(?i:authorization)",
          r"(?i:\bauthorization\\?[\"']?\s{0,4}[:=]\s{0,4}\\?[\"']?(?:basic|bearer|digest|token|apikey|sharedkey)\s{1,4}[^\s\"']{6})"),
    SecretRule("JSON Web Token", "eyJ", r"\beyJ[A-Za-z0-9_-]{8,400}\.[A-Za-z0-9_-]{4}"),
    SecretRule("private key", "PRIVATE KEY", r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,6}PRIVATE KEY"),
    SecretRule("key of 64 bytes", "==", r"(?:^|[^A-Za-z0-9+/=])[A-Za-z0-9+/]{86}==(?:[^A-Za-z0-9+/=]|$)"),
    SecretRule("user and password in a URL", "@", r"\b[A-Za-z][A-Za-z0-9+.-]{0,30}://[^/\s:@?#]{0,200}:[^/\s@?#]{1,400}@"),
    SecretRule("key of Azure AI services", "JQQJ9", r"\b[A-Za-z0-9]{52}JQQJ9[9D][A-Za-z0-9]{26}\b"),
    SecretRule("client secret of Entra ID", "Q~",
          r"(?:^|[^\w~.-])[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?:[^\w~.-]|$)"),
    SecretRule("GitHub", "gh[pousr]_|github_pat_",
          r"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{22})"),
    SecretRule("GitLab", "gl(?:pat|ptt|dt|rt|cbt|soat|ft|agent|oas|imt)-",
          r"\bgl(?:pat|ptt|dt|rt|cbt|soat|ft|agent|oas|imt)-[\w-]{20}"),
    SecretRule("Databricks", "dapi[0-9a-f]", r"\bdapi[0-9a-f]{32}"),
    SecretRule("Hugging Face", "hf_|api_org_", r"\b(?:hf_|api_org_)[A-Za-z0-9]{30}"),
    SecretRule("AWS", "AKIA|ASIA|ABIA|ACCA", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b"),
    SecretRule("AWS Bedrock", "ABSK|bedrock-api-key-", r"\bABSK[A-Za-z0-9+/]{100}|\bbedrock-api-key-[A-Za-z0-9+/]{20}"),
    SecretRule("Google", r"AIza|ya29\.|GOCSPX-", r"\bAIza[\w-]{35}|\bya29\.[\w-]{20}|\bGOCSPX-[\w-]{28}"),
    SecretRule("Slack", r"xox[a-z][.-]|xapp-",
          r"\bxox[a-z](?:\.xox[a-z])?-[0-9A-Za-z-]{10}|\bxapp-[0-9]-[A-Za-z0-9]{1,40}-[0-9]{1,40}-[a-z0-9]"),
    SecretRule("webhook", r"hooks\.slack\.com/|webhook\.office\.com/|/api/webhooks/",
          r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{20}"
          r"|webhook\.office\.com/webhookb2/[a-z0-9]{8}|discord(?:app)?\.com/api/webhooks/[0-9]{10}"),
    SecretRule("OpenAI", "sk-(?:proj|svcacct|admin|ant|or)-|sk-[A-Za-z0-9]{32}|T3BlbkFJ",
          r"\bsk-(?:proj|svcacct|admin|ant|or)-[\w-]{20}|\bsk-[A-Za-z0-9]{32}|\b\w{20,200}T3BlbkFJ\w{20}"),
    SecretRule("other model services", "pplx-|r8_|nvapi-|gsk_",
          r"\b(?:pplx-[A-Za-z0-9]{48}|r8_[A-Za-z0-9]{37}|nvapi-[\w-]{60}|gsk_[A-Za-z0-9]{48})"),
    SecretRule("Stripe", "[sr]k_(?:live|test|prod)_", r"\b(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{10}"),
    SecretRule("SendGrid", r"SG\.", r"\bSG\.[\w=-]{16,32}\.[\w=-]{16}"),
    SecretRule("package registries", "npm_|pypi-|rubygems_|CLOJARS_",
          r"\b(?:npm_[A-Za-z0-9]{36}|pypi-[\w-]{32}|rubygems_[a-f0-9]{48}|CLOJARS_[a-z0-9]{60})"),
    SecretRule("Artifactory", "AKCp|cmVmd", r"\b(?:AKCp[A-Za-z0-9]{69}|cmVmd[A-Za-z0-9]{59})\b"),
    SecretRule("HashiCorp", r"hv[sb]\.|\.atlasv1\.", r"\bhv[sb]\.[\w-]{24}|\b[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{40}"),
    SecretRule("Grafana", "glc_|glsa_", r"\bglc_[A-Za-z0-9+/]{32}|\bglsa_[A-Za-z0-9]{32}_"),
    SecretRule("DigitalOcean", "do[opr]_v1_", r"\bdo[opr]_v1_[a-f0-9]{64}"),
    SecretRule("Docker Hub", "dckr_", r"\bdckr_(?:pat|oat)_[\w-]{20}"),
    SecretRule("Alibaba", "LTAI", r"\bLTAI[A-Za-z0-9]{20}\b"),
    SecretRule("Shopify", "shp(?:at|ca|pa|ss)_", r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    SecretRule("Telegram, as a bot has it", ":AA", r"\b[0-9]{8,10}:AA[\w-]{32,33}\b"),
    SecretRule("others by prefix", r"pul-[a-f0-9]|dt0c01\.|dp\.pt\.|pscale_|PMAK-|sntry[su]_|ops_eyJ|AGE-SECRET-KEY-1"
          r"|lin_api_|ntn_[0-9]|sha256~|HRKU-|tskey-|fio-u-",
          r"\b(?:pul-[a-f0-9]{40}|dt0c01\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}|dp\.pt\.[A-Za-z0-9]{43}"
          r"|pscale_(?:tkn|oauth|pw)_[\w=.-]{32}|PMAK-[a-f0-9]{24}-[a-f0-9]{34}|sntrys_eyJ[A-Za-z0-9+/]{20}"
          r"|sntryu_[a-f0-9]{64}|ops_eyJ[A-Za-z0-9+/]{100}|AGE-SECRET-KEY-1[A-Z0-9]{58}|lin_api_[A-Za-z0-9]{40}"
          r"|ntn_[0-9]{11}[A-Za-z0-9]{35}|sha256~[\w-]{43}|HRKU-AA[\w-]{58}|tskey-[a-z]{1,20}-[\w-]{20}|fio-u-[\w=-]{64})"),
)  # fmt: skip
#: Each text of a shape whose mark begins with `(?i:` has one of these, in any letter case.
WORDS = (
    *("passw", "passphrase", "pwd", "secret", "token", "key", "db_pass", "bearer", "authorization", "sig=", "code="),
    *("sharedaccesssig", "mysql", "mariadb", "sshpass", "docker", "az ", "curl"),
)

MASK = "***"

#: What findings state where a secret is and what should be there in its place; never masked.
VALUE_FOUND = "a value that looks like a secret"
VALUE_EXPECTED = "a reference to Key Vault, or a managed identity"

# How a name ends, in lower case without separators, if its value is a secret.
_SECRET_NAME = lazy_pattern(
    r"(?:passw(?:or)?d|passphrase|passcode|secret|token|credential|connectionstring|webhookurl|sasur[il]|securevalue"
    r"|kubeconfig"
    r"|(?:account|api|access|shared|primary|secondary|private|storage|master|signing|instrumentation|function|host"
    r"|auth|client|subscription|admin|query|encryption|decryption|license|service|session)key)s?(?:value|base64)?\d*$"
    r"|^key\d+$|^(?:proxy)?authorization$"
)
_SECRET_WORDS = frozenset({"cookie", "jwt", "pass", "pat", "pwd", "sas"})
# Names of secrets and of much else: text under them is secret if it is random, as keys are.
_DOUBTFUL_NAMES = frozenset({"auth", "key", "signature"})
_RANDOM = lazy_pattern(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])[A-Za-z0-9+/_-]{20,}={0,2}")
_WORD = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# How a name ends when it only describes or points, even inside an object of secrets.
_DESCRIBING_NAME = lazy_pattern(r"(?:type|id|identifier|ur[il]|name|version|mode)$")
_SEPARATORS = lazy_pattern(r"[^a-z0-9]+")

_PUBLIC_KEY = lazy_pattern(r"(?:ssh|ecdsa|sk)-[a-z0-9@.-]+ AAAA[A-Za-z0-9+/]+={0,3}(?: [^\s=:]*)?\s*")
_WORD_END = lazy_pattern(rb"[\s`\"']")
# What every text of a shape has, to find out quickly that a text has none.
_ASSIGNMENTS = lazy_pattern("|".join({shape.mark: None for shape in SHAPES if shape.mark.startswith("(?i:")}))
_TOKENS = lazy_pattern("|".join(shape.mark for shape in SHAPES if not shape.mark.startswith("(?i:")))
# No shape is shorter but those with one of these signs.
_SHORTEST, _SIGNS = 15, lazy_pattern("[=: ]")
# Characters from which on all shapes are searched for at once: RE2 reads fifty times as many in a second as `re`, which
# lets no other thread run meanwhile.
_LONG = 1 << 12
# Characters from which on it is not remembered whether a name is one of secrets, nor what is masked in a sentence.
_LONGEST_KEPT = 250


def masked(value: object, path: str = "") -> object:
    """Give the JSON value with every text in it that looks like a secret replaced by `***`.

    Args:
        value: a JSON value; not changed. Numbers, booleans, null and empty text are never masked.
        path: its JSON Pointer (`workspace:/...` too); its names count as those inside the value do.

    Idempotent: masking twice is masking once.
    """
    if value is None or isinstance(value, int | float):
        return value
    secret = doubtful = False
    for segment in path.split("/")[1:]:
        name = segment.replace("~1", "/").replace("~0", "~")
        doubtful = _is_doubtful(name, doubtful)
        secret = _is_secret(name, secret)
    return _masked(value, secret, doubtful)


def masked_message(text: str) -> str:
    """Give a sentence with what looks like a secret in it replaced by `***`, each up to the next space.

    Idempotent, as `masked` is.
    """
    return _masked_known(text) if len(text) < _LONGEST_KEPT else _masked_message(text)


def has_secret_shape(text: str) -> bool:
    """Check whether a text has the shape of a secret, whatever its name is."""
    return _hides(text, secret=False, doubtful=False)


def names_secret(name: str, text: str) -> bool:
    """Check whether the name of a text is one of secrets; of names of much else, too, only random text is secret."""
    return _is_secret(name, False) or (_is_doubtful(name, False) and _RANDOM.fullmatch(text) is not None)


def _masked_message(text: str) -> str:
    if not _has_mark(text) or _PUBLIC_KEY.fullmatch(text):
        return text
    content, parts, position = _encoded(text), [], 0
    # Each search begins behind the last word, so that no part of the text is read for every secret in it.
    while found := _shapes().search(content, position):
        start, end = found.span()
        start += not content[start : start + 1].isalnum() and content[start : start + 1] != b"-"  # the sign before it
        parts += [content[position:start], MASK.encode()]
        space = None if b"PRIVATE KEY" in content[start:end] else _WORD_END.search(content, end)
        position = space.start() if space else len(content)
    return b"".join((*parts, content[position:])).decode("utf-8", "surrogatepass")


_masked_known = lru_cache(maxsize=4096)(_masked_message)


def _masked(value: object, secret: bool, doubtful: bool) -> object:
    if isinstance(value, dict):
        named = _names_a_secret(value)
        return {
            key: _masked(
                below, _is_secret(str(key), secret or (named and key == "value")), _is_doubtful(str(key), False)
            )
            for key, below in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_masked(below, secret, doubtful) for below in value]
    return MASK if isinstance(value, str) and _hides(value, secret, doubtful) else value


def _hides(text: str, secret: bool, doubtful: bool) -> bool:
    if secret:
        is_harmless = text in ("", VALUE_FOUND, VALUE_EXPECTED) or text.lower().startswith("/subscriptions/")
        return not is_harmless
    if doubtful and _RANDOM.fullmatch(text):
        return True
    return _has_mark(text) and _shapes().search(_encoded(text)) is not None and _PUBLIC_KEY.fullmatch(text) is None


def _has_mark(text: str) -> bool:
    """Return whether a text may have one of the shapes; most texts need no other check."""
    if len(text) > _LONG:
        return True
    if not _SIGNS.search(text):
        return len(text) >= _SHORTEST and _TOKENS.search(text) is not None
    if _TOKENS.search(text):
        return True
    lower = text.lower()
    for word in WORDS:
        if word in lower:
            return _ASSIGNMENTS.search(text) is not None
    return False


@cache
def _shapes() -> re2._Regexp:
    """Return all shapes as one expression of RE2, which takes linear time; compiled at the first text with a mark."""
    import re2

    options = re2.Options()
    options.never_capture = True
    options.encoding = re2.Options.Encoding.LATIN1  # every shape is of ASCII characters, and bytes have fewer states
    options.max_mem = 1 << 26  # its automaton has room, so that it need not fall back to a slower one
    return re2.compile("|".join(shape.pattern for shape in SHAPES).encode(), options)


def _encoded(text: str) -> bytes:
    """Return the text as RE2 reads it: places in bytes need no counting of characters."""
    return text.encode("utf-8", "surrogatepass")


def _names_a_secret(value: dict[object, object]) -> bool:
    """Return whether the object is a pair such as `{"name": "DB_PASSWORD", "value": "..."}`."""
    return any(isinstance(name := value.get(key), str) and _is_secret(name, False) for key in ("name", "key"))


def _is_secret(name: str, above: bool) -> bool:
    """Return whether text under this name is secret, given whether text next to the name is.

    An array index changes nothing.
    """
    return _is_known_secret(name, above) if len(name) < _LONGEST_KEPT else _is_new_secret(name, above)


def _is_new_secret(name: str, above: bool) -> bool:
    plain = _SEPARATORS.sub("", name.lower())
    if _SECRET_NAME.search(plain) or _last_word(name) in _SECRET_WORDS:
        return True
    return above and _DESCRIBING_NAME.search(plain) is None


_is_known_secret = lru_cache(maxsize=4096)(_is_new_secret)


def _is_doubtful(name: str, above: bool) -> bool:
    """Return whether random text under this name is secret; an array index changes nothing."""
    return above if name.isdecimal() else name.lower() in _DOUBTFUL_NAMES


def _last_word(name: str) -> str:
    words = _WORD.findall(name)
    return words[-1].lower() if words else ""
