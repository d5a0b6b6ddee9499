"""Start-up, shutdown, and the assembly of the main window."""
