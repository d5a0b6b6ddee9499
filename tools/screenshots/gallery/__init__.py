"""Pictures of the whole window in every state of the chat, in both themes and several sizes, to be looked at."""
