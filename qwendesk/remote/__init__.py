"""Models on other servers: llama-server, LM Studio, Ollama, vLLM, SGLang, another QwenDesk, and their kin."""
