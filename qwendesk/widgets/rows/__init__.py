"""Rows for the settings page and the inspector. Each shows and edits one option of the options table."""
