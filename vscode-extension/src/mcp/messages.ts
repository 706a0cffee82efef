import type { McpServer } from "../protocol";

/** What the user may want of a server. `digest` says of what they saw, for those that agree to something. */
export type Wish =
  | { type: "approve" | "approveTools"; name: string; digest: string }
  | { type: "turnOff" | "restart" | "signIn" | "logs"; name: string };

export type ToServersPage =
  /** `nothing`: what to say when there are none. */
  | { type: "servers"; servers: McpServer[]; deferred: boolean; nothing: string }
  /** What came of a wish; "" takes it back. */
  | { type: "told"; name: string; level: "info" | "error"; text: string }
  /** Bring that server into sight. */
  | { type: "show"; name: string };

export type ToServersHost = { type: "ready" } | Wish;
