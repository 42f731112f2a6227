"""The cases of Open Policy Agent, run on the embedded engine: what differs from OPA, and how."""
