"""Makes the built-in demo model from nothing: its texts, tokenizer, pictures, training, files and figures.

README.md beside this file says how. Needs PyTorch and tokenizers: `pip install --group demo-model`.
"""
