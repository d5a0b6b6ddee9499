"""The engine: the worker process, which runs llama.cpp, and its client in the app."""
