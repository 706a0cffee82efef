import type { Approval } from "../protocol";
import { oneLine, visible } from "../editor/visible";
import { reasons } from "./words";

/** Characters of what is asked that are taken in at a glance, in a notification. */
const GLANCE = 200;

/**
 * All that a plain yes would allow, on one short line: of a command also where it runs and what the model says of it;
 * undefined for what has to be read first: edits, plans, long or hidden text, and whatever comes with a warning or with
 * more rights.
 */
export function allowable(approval: Approval): string | undefined {
  const { title, detail, lines, proposalId, document, answers, parts } = approval;
  const what = detail.trim();
  if (proposalId !== null || document !== null || what === "" || what.includes("\n")) return undefined;
  const about = lines.map(({ text }) => text).filter((text) => /^(The model says|In): /.test(text));
  const [first] = answers;
  if (first?.action !== "allow" || first.scope !== "once" || first.grants.length > 0) return undefined;
  if (parts.some(({ decision }) => decision === "deny")) return undefined;
  if (reasons(approval).some(({ tone }) => tone === "warning" || tone === "bad")) return undefined;
  const whole = [what, ...about].join(" · ");
  if (oneLine(whole, GLANCE) !== whole) return undefined; // cut, or with something hidden in it
  return visible(title).includes(what)
    ? [oneLine(title), ...about].join(" · ")
    : `${oneLine(title)}: ${whole}`;
}
