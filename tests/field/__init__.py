"""What public reports of real use broke, kind by kind and for each way into the app: see grid.py."""
