"""The engine worker process. Only modules in this package import llama_cpp."""
