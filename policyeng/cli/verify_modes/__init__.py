"""The analyses of `policyeng verify`, one module each."""
