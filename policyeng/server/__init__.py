"""The evaluator over HTTP: the verdicts of `check` and of `admit`, for callers that are not Python.

Nothing outside of this package imports FastAPI, uvicorn or prometheus-client, which the extra `server` brings.
"""
