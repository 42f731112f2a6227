"""The generator of the data in `policyeng/schema`."""
