"""Model files: the local library, search on Hugging Face, offers for this PC, downloads, checks and fixes."""
