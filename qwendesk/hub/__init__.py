"""Model files: headers, the library, downloads and imports, the catalog, and the rules that judge a file."""
