"""Measurements, one script per question; run by `make bench`."""
