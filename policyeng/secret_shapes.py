"""What text with a secret in it looks like: data, as regular expressions of RE2.

The prefixes and lengths of tokens are those of the rules of gitleaks (https://github.com/gitleaks/gitleaks,
config/gitleaks.toml after v8.30.0, commit b58d3f10; MIT licence); the expressions are our own. Left out are its rules
that need the name of a vendor in the text, or measure how random a text is. Every repetition has a limit, so that a
text with many beginnings of secrets is not read to its end for each of them.
"""

from __future__ import annotations

from typing import NamedTuple


class Shape(NamedTuple):
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
_WORD = r"(?:passwd|password|passphrase|pwd|pgpassword|db_pass)"
_ASSIGNED = rf"(?:{_WORD}|secret|token|{_KEY}[-_ ]?key)"
#: What may be between the name and the value of JSON, YAML or a program, where the JSON may itself be quoted.
_COLON = r"\\?[\"']?\s{0,4}:\s{0,4}\\?[\"']?"

#: Where an assignment to a secret may be.
_MARK = r"(?i:(?:passwd|password|passphrase|pwd|secret|token|key|db_pass)"

SHAPES = (
    Shape("assignment", _MARK + r"[\"']?\s{0,4}=)",
          rf"(?i:(?:\b|_){_ASSIGNED}[\"']?\s{{0,4}}=\s{{0,4}}[^\s;])"),
    Shape("password after a colon", _MARK + r"\\?[\"']?\s{0,4}:)",
          rf"(?i:(?:\b|_){_WORD}{_COLON}[^\s\"'\\,;{{}}\[\]])"),
    Shape("value with a digit after a colon", _MARK + r"\\?[\"']?\s{0,4}:)",
          rf"(?i:(?:\b|_|client|access|refresh|api|auth|sas)(?:secret|token|{_KEY}[-_ ]?key){_COLON}"
          r"[^\s\"'\\,;/{}\[\]]{0,64}[0-9][^\s\"'\\,;/{}\[\]]{4})"),
    Shape("option", r"(?i:(?:password|secret|token|-key)[ =])",
          r"(?i:--(?:[\w-]{1,60}-)?(?:password|secret|token|(?:api|access|account)-key)[ =]\S)"),
    Shape("option -p", r"(?i:mysql|mariadb|sshpass|docker\s|az )",
          r"(?i:\b(?:mysql(?:dump|admin)?|mariadb|sshpass|docker\s{1,4}login|az login)\b"
          r"[^\n]{0,200}?\s-p\s{0,4}[^\s-])"),
    Shape("user of curl", r"(?i:curl\s)",
          r"(?i:\bcurl\b[^\n]{0,300}?\s(?:-u|--user)[ =]?\s{0,4}[\"']?[^\s:\"']{1,200}:[^\s\"'])"),
    Shape("shared access signature", "(?i:sharedaccesssignature)",
          r"(?i:\bsharedaccesssignature(?:\s{0,4}=|\s{1,4}s[a-z]=))"),
    Shape("signature in a URL", "(?i:sig=)", r"(?i:(?:^|[?&;`\s\"'])sig=[a-z0-9%+/=_-]{16})"),
    Shape("key in the URL of a function", "(?i:code=)", r"[?&]code=[\w%/+-]{40}"),
    Shape("bearer token", r"(?i:bearer\s)", r"(?i:\bbearer\s{1,4}[a-z0-9._~+/-]{20})"),
    Shape("authorization header", "(?i:authorization)",
          r"(?i:\bauthorization\\?[\"']?\s{0,4}[:=]\s{0,4}\\?[\"']?(?:basic|bearer|digest|token|apikey|sharedkey)\s{1,4}[^\s\"']{6})"),
    Shape("JSON Web Token", "eyJ", r"\beyJ[A-Za-z0-9_-]{8,400}\.[A-Za-z0-9_-]{4}"),
    Shape("private key", "PRIVATE KEY", r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,6}PRIVATE KEY"),
    Shape("key of 64 bytes", "==", r"(?:^|[^A-Za-z0-9+/=])[A-Za-z0-9+/]{86}==(?:[^A-Za-z0-9+/=]|$)"),
    Shape("user and password in a URL", "@", r"\b[A-Za-z][A-Za-z0-9+.-]{0,30}://[^/\s:@?#]{0,200}:[^/\s@?#]{1,400}@"),
    Shape("key of Azure AI services", "JQQJ9", r"\b[A-Za-z0-9]{52}JQQJ9[9D][A-Za-z0-9]{26}\b"),
    Shape("client secret of Entra ID", "Q~",
          r"(?:^|[^\w~.-])[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?:[^\w~.-]|$)"),
    Shape("GitHub", "gh[pousr]_|github_pat_",
          r"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{22})"),
    Shape("GitLab", "gl(?:pat|ptt|dt|rt|cbt|soat|ft|agent|oas|imt)-",
          r"\bgl(?:pat|ptt|dt|rt|cbt|soat|ft|agent|oas|imt)-[\w-]{20}"),
    Shape("Databricks", "dapi[0-9a-f]", r"\bdapi[0-9a-f]{32}"),
    Shape("Hugging Face", "hf_|api_org_", r"\b(?:hf_|api_org_)[A-Za-z0-9]{30}"),
    Shape("AWS", "AKIA|ASIA|ABIA|ACCA", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b"),
    Shape("AWS Bedrock", "ABSK|bedrock-api-key-", r"\bABSK[A-Za-z0-9+/]{100}|\bbedrock-api-key-[A-Za-z0-9+/]{20}"),
    Shape("Google", r"AIza|ya29\.|GOCSPX-", r"\bAIza[\w-]{35}|\bya29\.[\w-]{20}|\bGOCSPX-[\w-]{28}"),
    Shape("Slack", r"xox[a-z][.-]|xapp-",
          r"\bxox[a-z](?:\.xox[a-z])?-[0-9A-Za-z-]{10}|\bxapp-[0-9]-[A-Za-z0-9]{1,40}-[0-9]{1,40}-[a-z0-9]"),
    Shape("webhook", r"hooks\.slack\.com/|webhook\.office\.com/|/api/webhooks/",
          r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{20}"
          r"|webhook\.office\.com/webhookb2/[a-z0-9]{8}|discord(?:app)?\.com/api/webhooks/[0-9]{10}"),
    Shape("OpenAI", "sk-(?:proj|svcacct|admin|ant|or)-|sk-[A-Za-z0-9]{32}|T3BlbkFJ",
          r"\bsk-(?:proj|svcacct|admin|ant|or)-[\w-]{20}|\bsk-[A-Za-z0-9]{32}|\b\w{20,200}T3BlbkFJ\w{20}"),
    Shape("other model services", "pplx-|r8_|nvapi-|gsk_",
          r"\b(?:pplx-[A-Za-z0-9]{48}|r8_[A-Za-z0-9]{37}|nvapi-[\w-]{60}|gsk_[A-Za-z0-9]{48})"),
    Shape("Stripe", "[sr]k_(?:live|test|prod)_", r"\b(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{10}"),
    Shape("SendGrid", r"SG\.", r"\bSG\.[\w=-]{16,32}\.[\w=-]{16}"),
    Shape("package registries", "npm_|pypi-|rubygems_|CLOJARS_",
          r"\b(?:npm_[A-Za-z0-9]{36}|pypi-[\w-]{32}|rubygems_[a-f0-9]{48}|CLOJARS_[a-z0-9]{60})"),
    Shape("Artifactory", "AKCp|cmVmd", r"\b(?:AKCp[A-Za-z0-9]{69}|cmVmd[A-Za-z0-9]{59})\b"),
    Shape("HashiCorp", r"hv[sb]\.|\.atlasv1\.", r"\bhv[sb]\.[\w-]{24}|\b[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{40}"),
    Shape("Grafana", "glc_|glsa_", r"\bglc_[A-Za-z0-9+/]{32}|\bglsa_[A-Za-z0-9]{32}_"),
    Shape("DigitalOcean", "do[opr]_v1_", r"\bdo[opr]_v1_[a-f0-9]{64}"),
    Shape("Docker Hub", "dckr_", r"\bdckr_(?:pat|oat)_[\w-]{20}"),
    Shape("Alibaba", "LTAI", r"\bLTAI[A-Za-z0-9]{20}\b"),
    Shape("Shopify", "shp(?:at|ca|pa|ss)_", r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    Shape("Telegram, as a bot has it", ":AA", r"\b[0-9]{8,10}:AA[\w-]{32,33}\b"),
    Shape("others by prefix", r"pul-[a-f0-9]|dt0c01\.|dp\.pt\.|pscale_|PMAK-|sntry[su]_|ops_eyJ|AGE-SECRET-KEY-1"
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
