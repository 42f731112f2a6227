"""Draw what is judged: estates, what is stated beside them, parameters and clocks, for any bundle."""
