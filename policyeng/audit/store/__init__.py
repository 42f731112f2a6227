"""Keep runs in a database, as a chain that shows when it was changed."""
