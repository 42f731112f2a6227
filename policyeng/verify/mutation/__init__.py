"""Small faults written into policies, to see whether their cases and the laws notice them."""
