"""The Models page and the first start."""
