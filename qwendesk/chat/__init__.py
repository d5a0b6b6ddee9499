"""Chats: sending, answering, branches, presets, counting, import and export."""
