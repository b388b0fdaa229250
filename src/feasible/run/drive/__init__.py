"""The way of one step: environment, wire, compiled step, counters."""
