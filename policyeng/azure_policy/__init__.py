"""Azure Policy definitions, initiatives, assignments and exemptions, as they are written, for evaluation offline.

`definitions` reads them, `assignments` joins them, `conditions` and `expressions` compile conditions to closures with
three values, `aliases` knows where fields are, `effects` decides what a resource gets.
"""
