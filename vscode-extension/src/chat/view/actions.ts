import type { Action } from "../messages";

/** What the buttons of the actions say. */
export const ACTIONS: Record<Action, string> = {
  setKey: "Set API key…",
  signIn: "Sign in with ChatGPT",
  editorModel: "Use VS Code's models",
  logs: "Show logs",
  restart: "Reconnect",
  openFolder: "Open folder…",
  serverPath: "Open settings",
  settings: "Settings",
  selectModel: "Select model…",
  selectEffort: "Select thinking effort…",
  selectMode: "Select mode…",
  new: "New session",
  sessions: "Sessions",
  stop: "Stop",
  context: "Context",
  compact: "Compact",
  diff: "Show changes",
  install: "Install Amanu's daemon",
  doctor: "Doctor",
  tour: "Try it without a key",
  start: "Getting started",
  trust: "Review what this folder enables…",
  mcp: "MCP servers…",
  answer: "Answer…",
};
