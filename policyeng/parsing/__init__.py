"""JSON and YAML read strictly: one meaning per document, or a refusal with its place and remedy; and YAML written."""
