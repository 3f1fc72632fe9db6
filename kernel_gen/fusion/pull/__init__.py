"""Pulling values through nodes: the statement that computes one element of a value.

Puller --pull_node--> values, sums, moves, convolution --pull--> Puller, for the operands
"""
