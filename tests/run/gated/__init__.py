"""Imported, it lets the runs of a process stop at gates: on a cluster by name, elsewhere by `sitecustomize`."""

from feasible.run import train
from feasible.run.sweep import ray as cluster
from tests.run.gate import PATIENCE, stopping_at_gates

train.train = cluster.train = stopping_at_gates(train.train)
cluster.PATIENCE = PATIENCE
