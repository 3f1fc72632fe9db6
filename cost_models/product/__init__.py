"""What kernels of the matmul template take, by their schedules.

subject     the kernel, and how its busiest thread walks through tiles
tile        cycles of the register tile
traffic     what moves between the caches
packing     operands that each call packs
vectors     statements along a vector, vectors of a row
model       all of it together
"""
