import * as vscode from "vscode";
import { lines } from "../editor/context";
import type { AttachmentInput } from "../protocol";
import { NO_OUTPUT } from "./terminal";

/** Characters of what failed that are sent. */
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

/** *Fix with Amanu* in a terminal. */
export async function fixTerminal(say: Say, output: AttachmentInput | undefined): Promise<void> {
  if (output === undefined) {
    void vscode.window.showInformationMessage(NO_OUTPUT);
    return;
  }
  await say("Fix what went wrong in the terminal.", [output]);
}

async function attachment(uri: vscode.Uri, range: vscode.Range | undefined): Promise<AttachmentInput> {
  if (range === undefined) return { kind: "file", path: uri.fsPath };
  const document = await vscode.workspace.openTextDocument(uri);
  const { start, end } = lines(range);
  const text = document.getText(new vscode.Range(start, 0, end, 0));
  return { kind: "selection", path: uri.fsPath, lines: { start, end }, text };
}
