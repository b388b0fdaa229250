"""Small batched kernels on which the sets rest; nothing here knows of reinforcement learning."""
