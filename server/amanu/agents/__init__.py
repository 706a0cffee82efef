"""Sub-agents: agents with a conversation and a session of their own, to which a session's model hands work
(docs/agents.md)."""

VERB = None
