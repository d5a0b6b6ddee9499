"""The widgets of the local server."""
