"""Hardware probes, one file for each source. All implement the protocol in `base`."""
