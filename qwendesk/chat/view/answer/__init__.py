"""An answer as it is shown: Markdown in sections, with code, formulas, tables and citations."""
