"""The command line: a module for each command, and `main`, which runs one of them."""
