"""Run the cases of policies: `policyeng test`."""
