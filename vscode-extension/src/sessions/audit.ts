import type { Daemon } from "../daemon/client";
import type { OpenChats } from "../chat/openChats";
import type { Pages } from "../editor/pages";
import type { AuditQueryResult } from "../protocol";
import { oneLine, visible } from "../editor/visible";

/** Entries asked for at most: a call has a handful. */
const MOST = 200;

/** Shows what the audit log knows of a tool call. */
export async function showAudit(
  openChats: OpenChats,
  daemon: Daemon,
  pages: Pages,
  call: { toolCallId: string; title: string },
): Promise<void> {
  const { toolCallId, title } = call;
  const { sessionId } = openChats.state;
  const found = await daemon.request("amanu/audit/query", {
    sessionId,
    toolCallId,
    limit: MOST,
    detailed: true,
  });
  await pages.show("Amanu Audit.txt", audit(title, found));
}

/** The page: the call, its entries with all that is known of each, and whether the log can be believed. */
export function audit(title: string, { lines }: AuditQueryResult): string {
  return [oneLine(title, 200), "", ...lines.map(({ text }) => visible(text)), ""].join("\n");
}
