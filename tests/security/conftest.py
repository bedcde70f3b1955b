"""Fixtures of several modules of this folder."""

from principals import three

__all__ = ["three"]
