"""Populations: all seeds and methods of a task as one compiled program, for an accelerator.

groups       agents that are alike, as one
programs     one dispatch for one step of all agents
driver       all agents and their copies of the environment, step by step
evaluation   the episodes of all agents at once
checkpoint   the state of all agents as a whole
memory       what fits on the device
training     run folders in, run folders out
progress     what a person sees meanwhile
by_task      a comparison: a population for each task
"""
