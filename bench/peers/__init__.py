"""The app beside llama-server, which is built from the same llama.cpp: `python -m bench.peers`."""
