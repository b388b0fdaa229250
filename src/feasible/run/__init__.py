"""Runs: drivers that bring algorithms and environments together, evaluation, checkpoints and run folders."""
