import * as vscode from "vscode";
import { lines } from "./context";
import type { AttachmentInput } from "./protocol";

/** The path by which the daemon knows a terminal's text (`context/attachments.py`). */
const TERMINAL = "@terminal";
/** Characters of what failed that are sent: of a terminal its end, where the error stands. */
const SENT = 20_000;

type Say = (text: string, attachments: AttachmentInput[]) => Promise<void>;

/** As VS Code's menus on test results name what failed. */
interface FailedTest {
  test?: vscode.TestItem;
  message?: vscode.TestMessage;
}

/** *Fix with Amanu* on a failing test: what it said, and where the test is. */
export async function fixTest(say: Say, given: FailedTest | vscode.TestItem | undefined): Promise<void> {
  const failed: FailedTest =
    given === undefined ? {} : "uri" in given ? { test: given } : (given as FailedTest);
  const { test, message } = failed;
  const said = message && (typeof message.message === "string" ? message.message : message.message.value);
  const expected =
    message?.expectedOutput === undefined
      ? ""
      : `\nExpected: ${message.expectedOutput}\nActual: ${message.actualOutput}`;
  const place = message?.location ?? (test?.uri && { uri: test.uri, range: test.range });
  const name = test?.label ?? "This test";
  const request = `Fix this failing test: ${name}.${said ? ` It says:\n${said.slice(0, SENT)}${expected.slice(0, SENT)}` : " Run it to see how it fails."}`;
  await say(request, place ? [await attachment(place.uri, place.range)] : []);
}

/** *Fix with Amanu* in a terminal: what is selected there, else the last command and what it printed. */
export async function fixTerminal(say: Say): Promise<void> {
  const text = (await copied("copySelection")) || (await copied("copyLastCommandAndLastCommandOutput"));
  if (text === "") {
    void vscode.window.showInformationMessage(
      "Select the output in the terminal first: its shell does not tell where commands end.",
    );
    return;
  }
  const sent = text.slice(-SENT);
  const output: AttachmentInput = {
    kind: "selection",
    path: TERMINAL,
    startLine: 1,
    endLine: sent.split("\n").length,
    text: sent,
  };
  await say("Fix what went wrong in the terminal.", [output]);
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

async function attachment(uri: vscode.Uri, range: vscode.Range | undefined): Promise<AttachmentInput> {
  if (range === undefined) return { kind: "file", path: uri.fsPath };
  const document = await vscode.workspace.openTextDocument(uri);
  const { startLine, endLine } = lines(range);
  const text = document.getText(new vscode.Range(startLine - 1, 0, endLine, 0));
  return { kind: "selection", path: uri.fsPath, startLine, endLine, text };
}
