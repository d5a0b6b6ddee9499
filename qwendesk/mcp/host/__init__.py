"""The process that talks to one MCP server, so that nothing that a server does can stall or crash the app."""
