import * as vscode from "vscode";
import { text } from "../daemon/client";
import type { AuthStatus } from "../protocol";

export const GET_KEY: vscode.QuickInputButton = {
  iconPath: new vscode.ThemeIcon("link-external"),
  tooltip: "Get a Key (Opens the Provider's Page)",
};
const REMOVE: vscode.QuickInputButton = {
  iconPath: new vscode.ThemeIcon("trash"),
  tooltip: "Remove the Stored Key",
};

/** Ask for the key of a provider. What cannot be a key is refused while it is typed; `take` keeps it and returns what came
 * of that, or throws a sentence why the key is no good, which the user reads in the box. Null: the key is to be removed;
 * undefined: they left. */
export function askForKey<T>(
  status: AuthStatus,
  take: (key: string) => Promise<T>,
): Promise<T | null | undefined> {
  const title = status.title || status.vendor;
  const box = vscode.window.createInputBox();
  box.title = `API Key for ${title}`;
  box.placeholder = `Paste your ${title} key`;
  box.prompt = "The key is tested, then stored in your configuration folder, readable only by you.";
  box.password = true;
  box.ignoreFocusOut = true; // one goes to the provider's page to get it
  box.buttons = [...(status.page ? [GET_KEY] : []), ...(status.source === "file" ? [REMOVE] : [])];
  return new Promise((resolve) => {
    let outcome: T | null | undefined;
    box.onDidChangeValue((value) => {
      box.validationMessage = malformed(value);
    });
    box.onDidTriggerButton((button) => {
      if (button === GET_KEY) return openKeyPage(status);
      outcome = null;
      box.hide();
    });
    box.onDidAccept(async () => {
      if (box.value.trim() === "" || malformed(box.value) !== undefined || !box.enabled) return;
      box.enabled = false;
      box.busy = true;
      box.validationMessage = undefined;
      box.prompt = `Testing the key with ${title}…`;
      try {
        outcome = await take(box.value.trim());
        box.hide();
      } catch (error) {
        box.enabled = true;
        box.busy = false;
        box.prompt = "";
        box.validationMessage = text(error);
      }
    });
    box.onDidHide(() => {
      box.dispose();
      resolve(outcome);
    });
    box.show();
  });
}

/** Why it cannot be a key, whoever it is for (`check_form` in `server/amanu/models/credentials.py`). */
export function malformed(value: string): string | undefined {
  const key = value.trim();
  if (/\s/.test(key)) return "A key contains no spaces. Did you copy more than the key?";
  return /[^\x21-\x7e]/.test(key) ? "A key contains only letters, digits and punctuation." : undefined;
}

/** Show the page where the user gets a key. */
export function openKeyPage({ page }: AuthStatus): void {
  if (page !== null && /^https:\/\//.test(page)) void vscode.env.openExternal(vscode.Uri.parse(page));
}
