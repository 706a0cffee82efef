"""The user's and a workspace's own programs, run at moments of a session (docs/hooks.md)."""

VERB = "show the hooks, test them, and approve them"
