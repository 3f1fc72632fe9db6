"""Attention as one kernel for CPUs: softmax(pointwise(q · kᵀ)) · v with an online softmax.

    nest --analyse--> Problem --space, tiling--> Tiling --generate--> text

For a block of query rows and one block of keys after another: a register tile multiplies rows and
packed keys into scores, `softmax` applies what stands between the products and keeps each row's
largest score and sum, and a second register tile adds the weighted values to the row's results,
which are rescaled when a larger score appears. Scores never leave the cache. `after` divides by
the sums, applies the epilogue and stores.

Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al.,
"FlashAttention", NeurIPS 2022; splitting of the keys among threads after "Flash-Decoding", 2023.
"""

from kernel_gen.codegen.cpu.attention.template import AttentionTemplate

__all__ = ["AttentionTemplate"]
