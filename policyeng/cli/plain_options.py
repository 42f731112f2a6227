"""The options of a plain `check`, by kind; `python -m tools.plain_options` writes this."""

TEXTS = {
    "--from": "from_",
    "--scope": "scope",
    "--workspace": "workspace",
    "--profile": "profile",
    "--as-of": "as_of",
    "--group-by": "group_by",
    "--color": "color",
    "--format": "format_",
    "-f": "format_",
    "--owner-tag": "owner_tag",
    "--fail-on": "fail_on",
}

TEXT_LISTS = {
    "--parameters": "parameters",
    "--exclude": "exclude",
    "--data": "data",
    "--select": "select",
    "-s": "select",
    "--ignore": "ignore",
    "--framework": "framework",
    "--output": "output",
    "-o": "output",
}

PATH_LISTS = {
    "--policy": "policy",
    "--azure-policy": "azure_policy",
    "--exemptions": "exemptions",
}

FLAGS = {
    "--show-skipped": "show_skipped",
    "--no-gitignore": "no_gitignore",
    "--all-files": "all_files",
    "--no-exemptions": "no_exemptions",
    "--no-cache": "no_cache",
    "--verbose": "verbose",
    "-v": "verbose",
    "--summary": "summary",
    "--quiet": "quiet",
    "-q": "quiet",
    "--all": "all_",
    "--strict-unknown": "strict_unknown",
    "--exit-zero": "exit_zero",
}
