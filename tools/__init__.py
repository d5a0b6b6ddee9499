"""What builds the project's own environment, data and pictures. Nothing here is shipped."""
