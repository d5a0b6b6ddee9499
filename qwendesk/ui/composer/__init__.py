"""Where a question is written: text, attachments, the pills."""
