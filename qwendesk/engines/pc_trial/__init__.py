"""The trial on this PC: every engine is measured, and the result is a report that the user can send."""
