"""The engine: the worker process, which runs llama.cpp, and its client in the app.

When the worker starts and exits
--------------------------------
The client starts `python -m qwendesk --worker` (a bundle starts itself). The worker keeps a private copy of its
standard output for the protocol before llama.cpp is imported and points the public one at standard error, where native
code may print as it likes (ADR 002). Two threads: one reads requests, so that Cancel is acknowledged at once; the main
thread serves them one by one. If standard input closes, the app is gone, and the worker exits.

If the worker crashes, the service says why, starts another and loads the model again, at most three times a minute.

What the engine says in the user's language
-------------------------------------------
The app words what it sees of the worker by `tr` (`engine/load_failures.py`, `engine/load_failures.py`). The worker
knows no language: its errors are English texts with {0}, {1}, ... and the values for them, and the client translates
them (`engine/client.py`).
"""
