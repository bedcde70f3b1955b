"""The family soft_ against a superuser (test_soft_security.py), without a keeper.

Bug: what a value leaves, or a refusal, depends on a keeper.
"""

from test_soft_security import *  # noqa: F403
