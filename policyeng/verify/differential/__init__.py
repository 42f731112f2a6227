"""Differential testing of the engines on random examples."""
