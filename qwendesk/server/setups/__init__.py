"""Set-ups: the configuration with which other programs use the server."""
