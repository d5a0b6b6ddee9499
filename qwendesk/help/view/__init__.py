"""The guide's window and the crash report dialog."""
