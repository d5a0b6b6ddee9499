"""On a PC with an NVIDIA card: plans, memory and speed against what is really allocated and measured."""
