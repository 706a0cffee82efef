import type { SessionState } from "../src/protocol";

/** A session's state, with what the test cares about. */
export function state(given: Partial<SessionState> = {}): SessionState {
  return {
    sessionId: "s1",
    title: "A session",
    roots: ["/w"],
    mode: "ask",
    modelId: "scripted:demo",
    trusted: true,
    readOnly: false,
    closed: false,
    turn: null,
    lastTurn: null,
    items: [],
    hasEarlier: false,
    approvals: [],
    proposals: [],
    queue: [],
    retry: null,
    usage: null,
    ...given,
  };
}
