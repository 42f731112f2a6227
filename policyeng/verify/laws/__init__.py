"""The laws of consistency, each a sentence that every example of a bundle is tried on."""
