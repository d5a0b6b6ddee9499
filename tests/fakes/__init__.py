"""Stand-ins at the app's boundaries, scripted by tests."""
