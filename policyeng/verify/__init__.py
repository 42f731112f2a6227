"""Verify a bundle: generators of examples, laws, mutation testing, and satisfiability."""
