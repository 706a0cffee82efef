import type { Approval, ContextUse, Decision, Line, ModelInfo } from "../protocol";
import { visible } from "../editor/visible";

export const MODE_OF_PARENT = "A sub-agent works in the mode of the session it works for. Change it there.";

/** Who or what decided, and what was added. `here` is this client's own name. */
export function decision({ summary, outcome, client }: Decision, here: string): string {
  const elsewhere = client !== null && client !== "" && client !== here ? ` (${client})` : "";
  return visible(capital(summary || outcome) + elsewhere);
}

/** Why it is asked, who asks and what holds it, in the daemon's words: its lines but for those on its parts, which are
 * shown as such. */
export function reasons({ agent, parts, lines }: Approval): Line[] {
  const first = agent ? 1 : 0; // who wants it stands before them
  return [...lines.slice(0, first), ...lines.slice(first + parts.length)];
}

/** Who wants to do it, before what it is. */
export function wanted({ agent, title }: Pick<Approval, "agent" | "title">): string {
  return agent ? `${agent}: ${title}` : title;
}

/** What the model costs, as far as it is known. */
export function price({ inputPrice, outputPrice }: ModelInfo): string {
  if (inputPrice === null || outputPrice === null) return "price not known";
  return `$${inputPrice} in, $${outputPrice} out, per million tokens`;
}

export function inUse(context: ContextUse): number {
  return context.system + context.tools + context.memory + context.conversation + context.toolOutput;
}

/** A count in short: 1234 is "1.2 k", 1000 "1 k". */
export function tokens(count: number): string {
  if (count >= 999_500) return `${Number((count / 1_000_000).toFixed(1))} M`;
  if (count >= 10_000) return `${Math.round(count / 1000)} k`;
  return count >= 1000 ? `${Number((count / 1000).toFixed(1))} k` : String(count);
}

/** As the beginning of a line. */
export function capital(words: string): string {
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}
