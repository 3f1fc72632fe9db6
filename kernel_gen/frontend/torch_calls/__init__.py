"""Makers of torch calls, by kind of op: each takes a node's attributes and gives the call."""
