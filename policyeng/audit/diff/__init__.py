"""Comparisons of evaluations, trends and forecasts, with the causes of changes."""
