"""Imported, it lets the runs of a process stop at gates: on a cluster by name, elsewhere by `sitecustomize`."""

from feasible.run import training
from feasible.run.sweep import ray as cluster
from tests.run.gate import PATIENCE, stopping_at_gates

training.train = cluster.train = stopping_at_gates(training.train)
cluster.PATIENCE = PATIENCE
