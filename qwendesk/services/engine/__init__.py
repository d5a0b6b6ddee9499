"""The loaded engine: what the user wants loaded, decided and kept alive."""
