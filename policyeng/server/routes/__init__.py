"""The routes: one module for each kind of request, each with a function that adds them to an application."""
