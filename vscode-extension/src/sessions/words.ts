import type { Approval, ContextUse, Decision, Grant, Line, ModelInfo } from "../protocol";
import { GRANTS } from "../labels";
import { visible } from "../editor/visible";

export const MODE_OF_PARENT = "A sub-agent works in the mode of the session it works for. Change it there.";

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
