"""The HTTP server: the results of `check` and `admit` for callers that do not use Python.

Nothing outside of this package imports FastAPI, uvicorn or prometheus-client, which the extra `server` brings.
"""
