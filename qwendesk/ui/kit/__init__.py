"""What every page is built from: themes, icons, buttons, texts, tasks."""
