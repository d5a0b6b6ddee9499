"""What this PC has, and what fits into it. Pure rules and probes, no Qt."""
