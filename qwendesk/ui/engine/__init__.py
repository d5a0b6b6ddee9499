"""The engine page: what runs, on what, and whether it works."""
