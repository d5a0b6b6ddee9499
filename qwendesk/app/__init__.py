"""The window put together: the only place besides `ui` that knows Qt."""
