"""The routes: one module for each thing that is asked, each with a function that adds them to an application."""
