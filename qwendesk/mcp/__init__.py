"""Servers of the Model Context Protocol (MCP): their settings, the processes that talk to them, and what they offer."""
