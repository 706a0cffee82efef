import * as vscode from "vscode";
import type { AttachmentInput } from "../protocol";

/** The path by which the daemon knows a terminal's text (`context/attachments.py`). */
const PATH = "@terminal";
const MENTIONED = /(?<![\w@\\])@terminal(?![\w/.])/;
/** Characters that are sent: the end, where the error stands. */
const SENT = 20_000;

export const NO_OUTPUT =
  "There is no terminal output to send: no terminal is open, nothing was run in it, or its shell has no shell integration. Select the text in the terminal, then right-click it and choose Add to Amanu Chat.";

/** The attachments of a prompt, and the terminal's output when the prompt mentions it. Undefined: it does, but there is
 * none. */
export async function withTerminal(
  prompt: string,
  attachments: AttachmentInput[],
): Promise<AttachmentInput[] | undefined> {
  const attached = attachments.some((each) => "path" in each && each.path === PATH);
  if (attached || !MENTIONED.test(prompt)) return attachments;
  const output = await terminalOutput();
  return output && [...attachments, output];
}

/** The last command of the terminal in front and what that printed, else what is selected there: VS Code complains when
 * it shall copy a selection that is none. */
export async function terminalOutput(): Promise<AttachmentInput | undefined> {
  if (vscode.window.activeTerminal === undefined) return undefined;
  return attachment(await copied("copyLastCommandAndLastCommandOutput")) ?? terminalSelection();
}

/** What is selected in the terminal in front. */
export async function terminalSelection(): Promise<AttachmentInput | undefined> {
  return attachment(await copied("copySelection"));
}

function attachment(text: string): AttachmentInput | undefined {
  if (text === "") return undefined;
  const sent = text.slice(-SENT);
  return { kind: "selection", path: PATH, lines: { start: 0, end: sent.split("\n").length }, text: sent };
}

/** What a command of the terminal copies. The clipboard is as before afterwards. */
async function copied(command: string): Promise<string> {
  const { clipboard } = vscode.env;
  const before = await clipboard.readText();
  await clipboard.writeText("");
  try {
    await vscode.commands.executeCommand(`workbench.action.terminal.${command}`);
    return (await clipboard.readText()).trim();
  } finally {
    await clipboard.writeText(before);
  }
}
