"""Chats: asking, answering, keeping."""
