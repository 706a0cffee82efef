"""Sub-agents: agents with their own conversation and session, to which a session's model hands work
(docs/agents.md)."""

VERB = None
