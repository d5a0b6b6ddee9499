"""Files that become part of a question: text, code and PDF, read into words or pages."""
