"""Try the laws on many examples: over processes, with what failed before tried first."""
