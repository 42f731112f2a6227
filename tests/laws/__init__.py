"""What holds for every bundle because of the engine alone: what is wrong with an example, from whatever draws it."""
