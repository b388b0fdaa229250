"""Learning algorithms as pure functions over pytrees."""
