"""The test cases of Open Policy Agent, evaluated by the Rego engine: what differs from OPA, and how."""
