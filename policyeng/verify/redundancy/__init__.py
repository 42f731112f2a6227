"""Which policies of a bundle say nothing: they never apply, never fail or are implied, or have idle parameters."""
