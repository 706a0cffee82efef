import * as vscode from "vscode";
import type { Desk } from "../desk";
import type { Desks } from "../desks";
import type { Edits } from "../edits";
import type { Item } from "../protocol";
import type { Chats } from "./chats";
import { earlier, retry } from "./resend";

/** The commands of the context menu of a message in a chat, which names session and item. */
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
    on("amanu.editPrompt", async (desk, item) => {
      const found = await earlier(desk, item.itemId);
      desks.activate(desk);
      if (found !== undefined) await chats.show(found);
    }),
  ];
}
