"""Export and import of chats: Markdown, web pages, QwenDesk's own JSON, and exports of ChatGPT."""
