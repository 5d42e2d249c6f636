"""The fast path: loops over bytes, compiled, for what is written as nearly everything is.

Whatever is written in another way is left to the strict path, which says the same, slowly.
"""
