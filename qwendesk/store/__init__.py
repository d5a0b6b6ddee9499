"""Storage of the user's chats, messages and drafts in one SQLite file, with a folder for attachments."""
