"""Algorithms: pure update rules over pytrees. They know a task only by its `Spec`, and no environment."""
