"""One file for each way to read the hardware, all behind the Protocol of `base`."""
