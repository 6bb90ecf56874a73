"""Where Ingot answers otherwise than Redis on purpose: name of the case -> the reason.

A case listed here must really differ, else its test fails.
"""

DIFFERENCES: dict[str, str] = {}
