"""Values shared by all parts of the app; imports nothing of ours."""
