"""Keep the earlier name of `policyeng.verify.generators`, which users import."""
