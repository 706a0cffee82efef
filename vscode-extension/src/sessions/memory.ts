import * as vscode from "vscode";
import type { Daemon } from "../daemon/client";
import type { OpenChats } from "../chat/openChats";
import { oneLine } from "../editor/visible";

/** Show what is remembered for later sessions, and strike the fact the user chooses. */
export async function reviewMemory(openChats: OpenChats, daemon: Daemon): Promise<void> {
  const { sessionId } = openChats.state;
  if (sessionId === "")
    return openChats.tell({ level: "info", text: "Start a session first: memory belongs to its folder." });
  const { facts, summary } = await daemon.request("amanu/memory/list", { sessionId });
  if (facts.length === 0) return openChats.tell({ level: "info", text: summary });
  const items = facts.map((fact) => ({
    label: oneLine(fact.text),
    description: fact.scope === "user" ? "all projects" : "this project",
    detail: fact.path,
    fact,
  }));
  const title = "Remembered for later sessions";
  const chosen = await vscode.window.showQuickPick(items, { title, placeHolder: "Choose a fact to forget" });
  if (chosen === undefined) return;
  const { number, text } = chosen.fact;
  const struck = await daemon.request("amanu/memory/strike", { sessionId, number, text });
  openChats.tell({ level: "info", text: struck.summary });
}
