"""The local server: other programs use the loaded model through the APIs of OpenAI, Anthropic and llama-server."""
