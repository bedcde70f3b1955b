"""The suite of products of encodings (test_products.py), without a keeper.

Bug: something of them needs a keeper after all.
"""

from test_products import *  # noqa: F403
