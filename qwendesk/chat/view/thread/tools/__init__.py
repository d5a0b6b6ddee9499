"""Tool calls in the conversation."""
