"""Model files: their headers, and (later) where they come from and whether they are sound."""
