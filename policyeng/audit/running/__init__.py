"""Judge the parts of an estate, and judge a run again."""
