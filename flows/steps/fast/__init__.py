"""The fast path: compiled loops over bytes for values written in the most common forms.

Values in any other form are left to the strict path, which gives the same results slowly.
"""
