"""The tools that use the Internet: searching, and reading a page."""
