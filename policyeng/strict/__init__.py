"""Strict reading of JSON and YAML: one meaning per document, or a refusal with the place and the remedy."""
