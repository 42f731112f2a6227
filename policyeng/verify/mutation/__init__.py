"""Mutation testing of policies: whether their cases and the laws detect small faults in them."""
