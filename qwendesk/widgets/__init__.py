"""Reusable widgets, theme, text and motion, independent of any feature."""
