"""The settings page: the app's options, the model folders, the access token."""
