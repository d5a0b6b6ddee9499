"""Plain asyncio services that own the mutable state of the app, no Qt."""
