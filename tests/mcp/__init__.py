"""Tests of MCP servers: with real ones, friendly and hostile, in processes of their own."""
