"""Questions about the paper's tasks that are answered by computation rather than by training."""
