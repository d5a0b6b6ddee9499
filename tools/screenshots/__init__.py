"""Takes the guide's and the README's pictures again: the real window in states that are written down here."""
