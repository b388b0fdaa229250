"""The compiler from CVXPY's language to the library's sets."""
