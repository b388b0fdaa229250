"""The paper: its items, what it prints, what its authors' code did, and policies that learn nothing."""
