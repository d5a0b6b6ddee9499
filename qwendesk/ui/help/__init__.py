"""The user guide in a window of its own, read without a network."""
