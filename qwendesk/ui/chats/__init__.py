"""The list of chats: search, folders, and what can be done with a chat as a whole."""
