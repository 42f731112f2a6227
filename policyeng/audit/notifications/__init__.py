"""Notifications of owners about new and fixed findings."""
