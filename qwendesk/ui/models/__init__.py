"""The Models page: what this PC should run, what is on it, the Hub, and downloads; and the first start."""
