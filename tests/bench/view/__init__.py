"""Tests of the Bench page."""
