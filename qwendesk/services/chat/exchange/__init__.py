"""Chats out of the app and into it: Markdown, web pages, our own JSON, and what ChatGPT exports."""
