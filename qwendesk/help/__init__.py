"""The user guide and crash reports."""
