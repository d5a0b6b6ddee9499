"""Makes the app that people download: one folder with everything inside. `make bundle`, `make bundle-test`."""
