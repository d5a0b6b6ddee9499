"""Probes of this PC's hardware, and pure rules for what fits into its memory. No Qt."""
