"""Nests run in NumPy: what kernels are checked against. It shares nothing with what lowers them."""
