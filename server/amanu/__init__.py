"""Amanu: an AI pair programmer that lives behind the editor."""

__version__ = "0.1.0"
