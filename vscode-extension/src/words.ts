import type { ContextUse, Decision, Grant, ModelInfo, Spent, Usage } from "./protocol";
import { GRANTS } from "./labels";
import { visible } from "./visible";

const RULE = /^(\*|@?[A-Za-z][\w-]*)(?:\+network)?(?:\+unsandboxed)?(?=\(|\s|$)/;

/** The rules of a text, one a line: those about commands with these grants and no others, as the daemon saves them
 * (`granting` in `server/amanu/core/rules.py`). */
export function ruleGranting(text: string, grants: Grant[]): string {
  const marks = (["network", "unsandboxed"] as const)
    .filter((each) => grants.includes(each))
    .map((each) => `+${each}`);
  return text
    .split("\n")
    .map((line) => (/^@(read|write)\b/.test(line) ? line : line.replace(RULE, `$1${marks.join("")}`)))
    .join("\n");
}

/** What a yes with these grants says more than yes: what runs without the sandbox has the network, too. */
export function granting(grants: Grant[]): string {
  const strongest = (["unsandboxed", "network"] as const).find((grant) => grants.includes(grant));
  return strongest === undefined ? "" : ` ${GRANTS[strongest].name}`;
}

/** Who or what decided, and what was added. `here` is this client's own name. */
export function decision({ summary, outcome, client }: Decision, here: string): string {
  const elsewhere = client !== null && client !== "" && client !== here ? ` (${client})` : "";
  return visible(capital(summary || outcome) + elsewhere);
}

/** What the model costs, as far as it is known. */
export function price({ inputPrice, outputPrice }: ModelInfo): string {
  if (inputPrice === null || outputPrice === null) return "price not known";
  return `$${inputPrice} in, $${outputPrice} out, per million tokens`;
}

/** What there is room for is the window without what is kept for the reply; this share of it is used, in percent. */
export function fullness({ context, contextTokens, contextWindow }: Usage): number {
  const [used, room] =
    context === null ? [contextTokens, contextWindow] : [inUse(context), inUse(context) + context.free];
  return room > 0 ? Math.round((100 * used) / room) : 0;
}

export function inUse(context: ContextUse): number {
  return context.system + context.tools + context.memory + context.conversation + context.toolOutput;
}

/** Dollars, with what is not known said. */
export function cost(dollars: number | null): string {
  return dollars === null ? "cost not known" : `$${dollars.toFixed(dollars < 1 ? 3 : 2)}`;
}

/** Tokens and money of a session, a turn or a step on one line. */
export function spent(used: Spent): string {
  const read = used.inputTokens + used.cacheReadTokens + used.cacheWriteTokens;
  const cached = used.cacheReadTokens > 0 ? ` (${tokens(used.cacheReadTokens)} from the cache)` : "";
  const thoughts = used.thoughtTokens > 0 ? ` (${tokens(used.thoughtTokens)} thoughts)` : "";
  const written = used.outputTokens + used.thoughtTokens;
  return `${cost(used.costUsd)} · ${tokens(read)} in${cached} · ${tokens(written)} out${thoughts}`;
}

/** A count in short: 1234 is "1.2 k". */
export function tokens(count: number): string {
  if (count >= 1_000_000) return `${(count / 1_000_000).toFixed(1)} M`;
  if (count >= 10_000) return `${Math.round(count / 1000)} k`;
  return count >= 1000 ? `${(count / 1000).toFixed(1)} k` : String(count);
}

/** As the beginning of a line. */
export function capital(words: string): string {
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}
