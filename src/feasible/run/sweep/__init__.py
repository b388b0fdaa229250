"""Many runs: on the cores of one machine, or on a Ray cluster."""
