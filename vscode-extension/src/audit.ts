import type { Daemon } from "./client";
import type { Desk } from "./desk";
import type { Pages } from "./pages";
import type { AuditEntry, AuditQueryResult } from "./protocol";
import { oneLine, visible } from "./visible";

/** Entries asked for at most: a call has a handful. */
const MOST = 200;

/** Shows what the audit log knows of a tool call. */
export async function showAudit(
  desk: Desk,
  daemon: Daemon,
  pages: Pages,
  call: { toolCallId: string; title: string },
): Promise<void> {
  const { toolCallId, title } = call;
  const { sessionId } = desk.state;
  const found = await daemon.request("amanu/audit/query", { sessionId, toolCallId, limit: MOST });
  await pages.show("Amanu Audit.txt", audit(title, found));
}

/** The page: the call, whether the log can be believed, then its entries with all that is known of each. */
export function audit(title: string, { entries, intact, message }: AuditQueryResult): string {
  const head = [
    `What the audit log knows of: ${oneLine(title, 200)}`,
    "",
    `${intact ? "✓" : "✗"} ${oneLine(message, 300)}`,
    "",
  ];
  if (entries.length === 0) return [...head, "Nothing: the log has no entry about this call.", ""].join("\n");
  return [...head, ...entries.flatMap(lines)].join("\n");
}

function lines({ number, at, kind, text, data, hash }: AuditEntry): string[] {
  const when = new Date(at).toISOString().replace("T", " ").replace("Z", " UTC");
  return [
    `#${number}  ${when}  ${kind}`,
    ...indented(text),
    ...Object.entries(data).flatMap(([name, value]) => said(name, value).flatMap(indented)),
    `    hash: ${visible(hash)}`,
    "",
  ];
}

/** A value in lines, what is inside of it indented: nobody reads JSON in one line. */
function said(name: string, value: unknown): string[] {
  if (Array.isArray(value) && value.some((each) => typeof each === "object" && each !== null))
    return [
      `${name}:`,
      ...value.flatMap((each, at) => said(String(at + 1), each)).map((line) => `  ${line}`),
    ];
  if (Array.isArray(value)) return [`${name}: ${value.join(", ") || "none"}`];
  if (typeof value !== "object" || value === null) {
    const [first = "", ...more] = String(value ?? "none").split("\n");
    return [`${name}: ${first}`, ...more.map((line) => `  ${line}`)];
  }
  const inside = Object.entries(value).flatMap(([key, each]) => said(key, each));
  return [`${name}:`, ...inside.map((line) => `  ${line}`)];
}

function indented(text: string): string[] {
  return visible(text)
    .split("\n")
    .map((line) => `    ${line}`);
}
