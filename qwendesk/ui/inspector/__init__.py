"""The panel beside the chat: how the model is loaded, how it answers, what it is told first."""
