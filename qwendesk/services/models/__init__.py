"""Model files: what is here, what is on the Hub, what is wrong with them."""
