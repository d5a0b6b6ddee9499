"""The Load tab of the inspector, which is beside the chat. The other tabs belong to the chat package."""
