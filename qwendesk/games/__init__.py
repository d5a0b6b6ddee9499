"""Game mode: the model makes room while another program needs the graphics card, and comes back afterwards."""
