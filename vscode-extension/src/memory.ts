import * as vscode from "vscode";
import type { Daemon } from "./client";
import type { Desks } from "./desks";
import { oneLine } from "./visible";

/** Show what is remembered for later sessions, and strike the fact the user chooses. */
export async function reviewMemory(desks: Desks, daemon: Daemon): Promise<void> {
  const { sessionId } = desks.state;
  if (sessionId === "")
    return desks.tell({ level: "info", text: "Start a session first: memory belongs to its folder." });
  const { facts, summary } = await daemon.request("amanu/memory/list", { sessionId });
  if (facts.length === 0) return desks.tell({ level: "info", text: summary });
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
  desks.tell({ level: "info", text: struck.summary });
}
