"""The chat page, and what stands where a thread is not."""
