"""Find redundant policies: those that never apply, never fail or are implied, or have parameters without effect."""
