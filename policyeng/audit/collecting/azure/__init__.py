"""Read live Azure into a snapshot."""
