"""Loopback services as strict as the real ones: they refuse what the vendors refuse, and fail on demand."""
