"""The suite of the family soft_ (test_soft.py), without a keeper.

Bug: something of the family needs a keeper after all.
"""

from test_soft import *  # noqa: F403
