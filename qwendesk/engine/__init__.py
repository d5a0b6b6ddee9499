"""The engine: the worker process that owns llama.cpp, and the client that talks to it."""
