"""What there is by name: tasks, methods, the presets of a task, and what we recommend.

Importing it loads no JAX: presets and defaults are functions that are called when a run is configured.
"""
