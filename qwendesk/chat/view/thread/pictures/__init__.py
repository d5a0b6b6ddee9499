"""Pictures in the conversation."""
