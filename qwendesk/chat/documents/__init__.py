"""Attached documents: text, code and PDF files, read as text or as page images."""
