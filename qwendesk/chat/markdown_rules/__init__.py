"""Rules for markdown-it beyond CommonMark, for what models write. Pure Python; shared by the window and the exports."""
