"""Programs of the user, a workspace or a plug-in that are run at certain moments of a session (docs/hooks.md)."""

VERB = "show the hooks, test them, and approve them"
