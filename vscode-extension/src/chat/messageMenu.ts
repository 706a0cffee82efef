import * as vscode from "vscode";
import type { Chat } from "./chat";
import type { OpenChats } from "./openChats";
import type { Edits } from "../review/edits";
import type { Item } from "../protocol";
import { plain } from "../editor/visible";
import type { Chats } from "./chats";
import { earlier, retry } from "./resend";

/** The commands of the context menu of a message in a chat, which names session and item; from the palette the user
 * chooses the prompt. */
export function messageMenu(openChats: OpenChats, chats: Chats, edits: Edits): vscode.Disposable[] {
  const on = (name: string, work: (chat: Chat, item: Item) => unknown) =>
    vscode.commands.registerCommand(name, ({ sessionId, itemId }: Record<string, unknown> = {}) => {
      const chat = openChats.open.find(({ state }) => state.sessionId === sessionId);
      const item = chat?.state.items.find((each) => each.itemId === itemId);
      return chat && item && chat.attempt(async () => work(chat, item));
    });
  return [
    on("amanu.copyMessage", (_, item) => "text" in item && vscode.env.clipboard.writeText(item.text)),
    on("amanu.retry", async (chat, item) => {
      const { sessionId } = chat.state;
      if (item.turnId === null) return;
      await retry(chat, edits, item.turnId, ({ text, attachments }) =>
        chats.giveBack(sessionId, text, attachments),
      );
    }),
    vscode.commands.registerCommand(
      "amanu.editPrompt",
      ({ sessionId, itemId }: Record<string, unknown> = {}) => {
        const chat = openChats.open.find(({ state }) => state.sessionId === sessionId) ?? openChats.active;
        return chat.attempt(async () => {
          const chosen = typeof itemId === "string" ? itemId : await choosePrompt(chat.state.items);
          const found = chosen === undefined ? undefined : await earlier(chat, chosen);
          openChats.activate(chat);
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
