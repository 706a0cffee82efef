import * as vscode from "vscode";
import type { Desk } from "../desk";
import type { Desks } from "../desks";
import type { Edits } from "../edits";
import type { Item } from "../protocol";
import { plain } from "../visible";
import type { Chats } from "./chats";
import { earlier, retry } from "./resend";

/** The commands of the context menu of a message in a chat, which names session and item; from the palette the user
 * chooses the prompt. */
export function messageMenu(desks: Desks, chats: Chats, edits: Edits): vscode.Disposable[] {
  const on = (name: string, work: (desk: Desk, item: Item) => unknown) =>
    vscode.commands.registerCommand(name, ({ sessionId, itemId }: Record<string, unknown> = {}) => {
      const desk = desks.open.find(({ state }) => state.sessionId === sessionId);
      const item = desk?.state.items.find((each) => each.itemId === itemId);
      return desk && item && desk.attempt(async () => work(desk, item));
    });
  return [
    on("amanu.copyMessage", (_, item) => "text" in item && vscode.env.clipboard.writeText(item.text)),
    on("amanu.retry", async (desk, item) => {
      const { sessionId } = desk.state;
      if (item.turnId === null) return;
      await retry(desk, edits, item.turnId, ({ text, attachments }) =>
        chats.giveBack(sessionId, text, attachments),
      );
    }),
    vscode.commands.registerCommand(
      "amanu.editPrompt",
      ({ sessionId, itemId }: Record<string, unknown> = {}) => {
        const desk = desks.open.find(({ state }) => state.sessionId === sessionId) ?? desks.active;
        return desk.attempt(async () => {
          const chosen = typeof itemId === "string" ? itemId : await choosePrompt(desk.state.items);
          const found = chosen === undefined ? undefined : await earlier(desk, chosen);
          desks.activate(desk);
          if (found !== undefined) await chats.show(found);
        });
      },
    ),
  ];
}

/** One of the user's prompts, the newest first. */
async function choosePrompt(items: Item[]): Promise<string | undefined> {
  const prompts = items.filter((item) => item.kind === "userMessage" && !item.steer);
  const rows = prompts
    .toReversed()
    .map((item) => ({ label: plain("text" in item ? item.text : ""), itemId: item.itemId }));
  const options = { title: "Edit and Resend", placeHolder: "Choose the prompt to edit" };
  return (await vscode.window.showQuickPick(rows, options))?.itemId;
}
