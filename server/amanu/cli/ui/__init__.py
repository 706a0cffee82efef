"""The terminal around the chat."""
