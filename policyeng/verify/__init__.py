"""Prove things about a bundle: its cases, and what absence does."""
