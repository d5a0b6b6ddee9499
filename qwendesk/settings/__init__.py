"""App settings, load profiles, and the data that is stored on this PC."""
