"""Widgets of the MCP feature."""
