"""Only the Python side of llama-cpp-python: its libraries come in engine folders, once for each kind of processor."""

datas: list[tuple[str, str]] = []
binaries: list[tuple[str, str]] = []
hiddenimports = ["llama_cpp.llama_cpp", "llama_cpp.mtmd_cpp"]
# The package imports its HTTP server and these helpers only when asked; the worker uses the C API alone.
excludedimports = ["llama_cpp.server", "fastapi", "uvicorn", "transformers", "torch"]
