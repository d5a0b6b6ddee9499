"""A Windows environment on Linux: Wine, Python for Windows, the libraries and the engine, for running the tests."""
