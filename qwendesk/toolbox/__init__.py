"""Tools that the model can call: what they do, when the user is asked, and what they may touch."""
