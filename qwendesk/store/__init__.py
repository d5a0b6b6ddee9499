"""What people keep: chats, their messages and attachments, in one SQLite file of this user."""
