"""What the hardware does while a model runs: looked at once a second, judged, and put right."""
