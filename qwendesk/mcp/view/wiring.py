"""Builds the widgets of the MCP feature. Of them, the app imports only this module."""

from qwendesk.mcp.service import McpService
from qwendesk.mcp.view.servers_section import ServersSection


def make_servers_section(service: McpService) -> ServersSection:
    """Build the card for the settings page."""
    return ServersSection(service)
