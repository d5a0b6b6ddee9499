"""The bench feature: measures models on this PC, for the Bench page and `qwendesk bench`."""
