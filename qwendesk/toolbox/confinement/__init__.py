"""Runs a script where it can read and change nothing of the user's (Linux with bubblewrap)."""
