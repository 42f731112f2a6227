"""What text with a secret in it looks like: data, as regular expressions of RE2.

The prefixes and lengths of tokens are those of the rules of gitleaks (https://github.com/gitleaks/gitleaks,
config/gitleaks.toml after v8.30.0, commit b58d3f10; MIT licence); the expressions are our own. Left out are its rules that
need the name of a vendor in the text, or measure how random a text is.
"""

from __future__ import annotations

from typing import NamedTuple


class Shape(NamedTuple):
    """One form of secret.

    Attributes:
        name: what is secret.
        marks: texts, one of which is in every text of the shape; `a b` means both `a` and `b`. Those in lower case
            are found in any letter case. The colon of `://` counts as none.
        pattern: matches the secret, or what begins with it.
    """

    name: str
    marks: tuple[str, ...]
    pattern: str


#: The end of the name of a secret in an assignment.
_KEY = r"(?:account|api|access|shared|sharedaccess|primary|secondary|encryption|subscription|master|signing|license)"
_PASSWORD = r"(?:passwd|password|passphrase|pwd|pgpassword|db_pass)"
_ASSIGNED = rf"(?:{_PASSWORD}|secret|token|{_KEY}[-_ ]?key)"
#: What may be between the name and the value of JSON, YAML or a program, where the JSON may itself be quoted.
_COLON = r"\\?[\"']?\s*:\s*\\?[\"']?"

SHAPES = (
    Shape("assignment", tuple(f"{word} =" for word in ("passw", "passphrase", "pwd", "secret", "token", "key", "_pass")),
          rf"(?i:(?:\b|_){_ASSIGNED}[\"']?\s*=\s*[^\s;])"),
    Shape("password after a colon", tuple(f"{word} :" for word in ("passw", "passphrase", "pwd", "_pass")),
          rf"(?i:(?:\b|_){_PASSWORD}{_COLON}[^\s\"'\\,;{{}}\[\]])"),
    Shape("value with a digit after a colon", ("secret :", "token :", "key :"),
          rf"(?i:(?:\b|_|client|access|refresh|api|auth|sas)(?:secret|token|{_KEY}[-_ ]?key){_COLON}[^\s\"'\\,;/{{}}\[\]]{{0,64}}[0-9][^\s\"'\\,;/{{}}\[\]]{{4}})"),
    Shape("option", ("-- passw", "-- secret", "-- token", "-- key"),
          r"(?i:--(?:\w+-)*(?:password|secret|token|(?:api|access|account)-key)[ =]\S)"),
    Shape("option -p", ("-p mysql", "-p mariadb", "-p sshpass", "-p docker", "-p az login"),
          r"(?i:\b(?:mysql(?:dump|admin)?|mariadb|sshpass|docker\s+login|az\s+login)\b[^\n]{0,200}?\s-p\s*[^\s-])"),
    Shape("user of curl", ("curl -u", "curl --user"),
          r"(?i:\bcurl\b[^\n]{0,300}?\s(?:-u|--user)[ =]?\s*[\"']?[^\s:\"']+:[^\s\"'])"),
    Shape("shared access signature", ("sharedaccesssignature",), r"(?i:\bsharedaccesssignature(?:\s*=|\s+s[a-z]=))"),
    Shape("signature in a URL", ("sig=",), r"(?i:(?:^|[?&;`\s\"'])sig=[a-z0-9%+/=_-]{16})"),
    Shape("key in the URL of a function", ("code=",), r"[?&]code=[\w%/+-]{40}"),
    Shape("bearer token", ("bearer",), r"(?i:\bbearer\s+[a-z0-9._~+/-]{20})"),
    Shape("authorization header", ("authorization",),
          r"(?i:\bauthorization\\?[\"']?\s*[:=]\s*\\?[\"']?(?:basic|bearer|digest|token|apikey|sharedkey)\s+[^\s\"']{6})"),
    Shape("JSON Web Token", ("eyj",), r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\."),
    Shape("private key", ("private key",), r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY"),
    Shape("key of 64 bytes", ("==",), r"(?:^|[^A-Za-z0-9+/=])[A-Za-z0-9+/]{86}==(?:[^A-Za-z0-9+/=]|$)"),
    Shape("user and password in a URL", ("// @",), r"\b[A-Za-z][A-Za-z0-9+.-]*://[^/\s:@?#]*:[^/\s@?#]+@"),
    Shape("key of Azure AI services", ("JQQJ9",), r"\b[A-Za-z0-9]{52}JQQJ9[9D][A-Za-z0-9]{26}\b"),
    Shape("client secret of Entra ID", ("Q~",),
          r"(?:^|[^\w~.-])[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?:[^\w~.-]|$)"),
    Shape("GitHub", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
          r"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{22})"),
    Shape("GitLab", ("glpat-", "glptt-", "gldt-", "glrt-", "glcbt-", "glsoat-", "glft-", "glagent-", "gloas-", "glimt-"),
          r"\bgl(?:pat|ptt|dt|rt|cbt|soat|ft|agent|oas|imt)-[\w-]{20}"),
    Shape("Databricks", ("dapi",), r"\bdapi[0-9a-f]{32}"),
    Shape("Hugging Face", ("hf_", "api_org_"), r"\b(?:hf_|api_org_)[A-Za-z0-9]{30}"),
    Shape("AWS", ("AKIA", "ASIA", "ABIA", "ACCA"), r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b"),
    Shape("AWS Bedrock", ("ABSK", "bedrock-api-key-"), r"\bABSK[A-Za-z0-9+/]{100}|\bbedrock-api-key-[A-Za-z0-9+/]{20}"),
    Shape("Google", ("AIza", "ya29.", "gocspx-"), r"\bAIza[\w-]{35}|\bya29\.[\w-]{20}|\bGOCSPX-[\w-]{28}"),
    Shape("Slack", ("xox", "xapp-"), r"(?i:\bxox[a-z](?:\.xox[a-z])?-[0-9a-z-]{10}|\bxapp-[0-9]-[a-z0-9]+-[0-9]+-[a-z0-9])"),
    Shape("webhook", ("hooks.slack.com/", "webhook.office.com/", "discord /api/webhooks/"),
          r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{20}"
          r"|webhook\.office\.com/webhookb2/[a-z0-9]{8}|discord(?:app)?\.com/api/webhooks/[0-9]{10}"),
    Shape("OpenAI", ("sk-", "t3blbkfj"),
          r"\bsk-(?:proj|svcacct|admin|ant|or)-[\w-]{20}|\bsk-[A-Za-z0-9]{32}|\b\w{20,}T3BlbkFJ\w{20}"),
    Shape("other model services", ("pplx-", "r8_", "nvapi-", "gsk_"),
          r"\b(?:pplx-[A-Za-z0-9]{48}|r8_[A-Za-z0-9]{37}|nvapi-[\w-]{60}|gsk_[A-Za-z0-9]{48})"),
    Shape("Stripe", tuple(f"{kind}k_{mode}_" for kind in "sr" for mode in ("live", "test", "prod")), r"\b(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{10}"),
    Shape("SendGrid", ("SG.",), r"\bSG\.[\w=-]{16,32}\.[\w=-]{16}"),
    Shape("package registries", ("npm_", "pypi-", "rubygems_", "CLOJARS_"),
          r"\b(?:npm_[A-Za-z0-9]{36}|pypi-[\w-]{32}|rubygems_[a-f0-9]{48}|CLOJARS_[a-z0-9]{60})"),
    Shape("Artifactory", ("AKCp", "cmVmd"), r"\b(?:AKCp[A-Za-z0-9]{69}|cmVmd[A-Za-z0-9]{59})\b"),
    Shape("HashiCorp", ("hvs.", "hvb.", ".atlasv1."), r"\bhv[sb]\.[\w-]{24}|\b[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{40}"),
    Shape("Grafana", ("glc_", "glsa_"), r"\bglc_[A-Za-z0-9+/]{32}|\bglsa_[A-Za-z0-9]{32}_"),
    Shape("DigitalOcean", ("doo_v1_", "dop_v1_", "dor_v1_"), r"\bdo[opr]_v1_[a-f0-9]{64}"),
    Shape("Docker Hub", ("dckr_",), r"\bdckr_(?:pat|oat)_[\w-]{20}"),
    Shape("Alibaba", ("LTAI",), r"\bLTAI[A-Za-z0-9]{20}\b"),
    Shape("Shopify", ("shpat_", "shpca_", "shppa_", "shpss_"), r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    Shape("Telegram, as a bot has it", (":AA",), r"\b[0-9]{8,10}:AA[\w-]{32,33}\b"),
    Shape("others by prefix", ("pul-", "dt0c01.", "dp.pt.", "pscale_", "PMAK-", "sntrys_", "sntryu_", "ops_eyj",
                               "AGE-SECRET-KEY-1", "lin_api_", "ntn_", "sha256~", "HRKU-", "tskey-", "fio-u-"),
          r"\b(?:pul-[a-f0-9]{40}|dt0c01\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}|dp\.pt\.[A-Za-z0-9]{43}"
          r"|pscale_(?:tkn|oauth|pw)_[\w=.-]{32}|PMAK-[a-f0-9]{24}-[a-f0-9]{34}|sntrys_eyJ[A-Za-z0-9+/]{20}"
          r"|sntryu_[a-f0-9]{64}|ops_eyJ[A-Za-z0-9+/]{100}|AGE-SECRET-KEY-1[A-Z0-9]{58}|lin_api_[A-Za-z0-9]{40}"
          r"|ntn_[0-9]{11}[A-Za-z0-9]{35}|sha256~[\w-]{43}|HRKU-AA[\w-]{58}|tskey-[a-z]+-[\w-]{20}|fio-u-[\w=-]{64})"),
)  # fmt: skip
