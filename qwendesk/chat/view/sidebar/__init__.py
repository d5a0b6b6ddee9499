"""The chat list: search, folders, and actions on a whole chat."""
