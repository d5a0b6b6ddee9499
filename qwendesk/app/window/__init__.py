"""The main window around the pages: navigation rail, top bar, command palette, tray."""
