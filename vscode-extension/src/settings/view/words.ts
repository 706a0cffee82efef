import { capital } from "../../sessions/words";

/** Headings of sections whose name in the file says too little. */
export const SECTIONS: Record<string, string> = {
  "": "General",
  limits: "Limits",
  context: "Context window",
  routing: "Model routing",
  agents: "Sub-agents",
  clouds: "Cloud providers",
  shell: "Commands",
  web: "Web access",
  checks: "Edit checks",
  history: "History",
  catalogue: "Model catalog",
};

const LABELS: Record<string, string> = {
  model: "Default model",
  mode: "Default mode",
  effort: "Thinking effort",
  loops: "Loop detection",
  vision: "Models with image input",
  base_urls: "Provider base URLs",
  endpoints: "Other providers (OpenAI-compatible)",
  idle_seconds: "Idle seconds before the daemon stops",
  max_sessions: "Maximum open sessions",
  "routing.subagent": "Sub-agent model",
  "routing.utility": "Utility model (titles, summaries)",
  "routing.fallback": "Fallback models",
  "limits.cost_usd": "Cost limit per turn (USD)",
  "limits.session_cost_usd": "Cost limit per session (USD)",
};

/** The section of what few users ever set, among the keys of the first level. */
export const ADVANCED = "advanced";
const COMMON: ReadonlySet<string> = new Set(["model", "mode", "effort"]);

/** Where the page shows a setting. */
export function sectionOf({ key, section }: { key: string; section: string }): string {
  return section === "" && !COMMON.has(key) ? ADVANCED : section;
}

/** Keys that hold one model. */
export const MODELS: ReadonlySet<string> = new Set([
  "model",
  "routing.plan",
  "routing.easy",
  "routing.hard",
  "routing.utility",
  "routing.subagent",
]);

/** How a user knows a setting. */
export function label(key: string): string {
  return LABELS[key] ?? words(key.slice(key.lastIndexOf(".") + 1));
}

/** A name in a file, as words: `keep_audit_mb` is "Keep audit MB". */
export function words(name: string): string {
  return capital(name.replaceAll("_", " ").replace(/\b(usd|mb|url)\b/g, (word) => word.toUpperCase()));
}
