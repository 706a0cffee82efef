import type { Mode, ModelInfo, Scope } from "./protocol";

/** For how long an answer counts, as the person reads it. */
export const SCOPES: Record<Scope, string> = {
  once: "this once",
  turn: "for this turn",
  session: "for this session",
  workspace: "always in this folder",
  user: "always, everywhere",
};

export const MODES: Record<Mode, [name: string, meaning: string]> = {
  plan: ["Plan", "reads only"],
  ask: ["Ask", "asks before every effect"],
  acceptEdits: ["Accept edits", "edits the workspace unasked"],
  auto: ["Auto", "asks only what a rule or a command makes it ask"],
};

/** What the model costs, as far as it is known. */
export function price({ inputPrice, outputPrice }: ModelInfo): string {
  if (inputPrice === null || outputPrice === null) return "price not known";
  return `$${inputPrice} in, $${outputPrice} out, per million tokens`;
}
