import type { Approval } from "./protocol";
import { oneLine, visible } from "./visible";

/** Characters of what is asked that are taken in at a glance, in a notification. */
const GLANCE = 100;

/**
 * All that a plain yes would allow, on one short line; undefined for what has to be read first: edits, plans, long or
 * hidden text, and whatever comes with a warning or with more rights.
 */
export function allowable(approval: Approval): string | undefined {
  const { title, detail, proposalId, document, scopes, options, parts, lines } = approval;
  const whole = detail.trim();
  if (proposalId !== null || document !== null || whole === "") return undefined;
  if (!scopes.some(({ scope }) => scope === "once") || (options[0]?.grants.length ?? 0) > 0) return undefined;
  if (parts.some(({ decision }) => decision === "deny")) return undefined;
  if (lines.some(({ tone }) => tone === "warning" || tone === "bad")) return undefined;
  if (oneLine(whole, GLANCE) !== whole) return undefined; // cut, of several lines, or with something hidden in it
  return visible(title).includes(whole) ? oneLine(title) : `${oneLine(title)}: ${whole}`;
}
