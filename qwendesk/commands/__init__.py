"""Command lines of other programs: read, written for a model, and recognized in pasted text."""
