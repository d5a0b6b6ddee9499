"""Pictures of the whole window in every state, in each theme, at several sizes and scales, to be looked at."""
