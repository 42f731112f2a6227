"""Generators of snapshots, statements, parameters and clocks for any bundle."""
