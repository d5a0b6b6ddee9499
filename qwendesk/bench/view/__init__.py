"""The widgets of the bench feature."""
