"""Shim."""
from policyeng.sources.strict import parse_json as parse_json
from policyeng.sources.strict_yaml import parse_yaml

def load_yaml(text: str, place: str) -> object:
    """Load."""
    return parse_yaml(text.encode(), place).value
