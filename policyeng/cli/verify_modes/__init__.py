"""What `policyeng verify` proves, a module for each way of asking."""
