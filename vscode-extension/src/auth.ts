import * as vscode from "vscode";
import type { Daemon } from "./client";
import type { Desk } from "./desk";
import type { AuthStatus, ModelInfo } from "./protocol";

/** The outcome of setting a key, in words; `vendor` if a key is now set. */
export interface KeySet {
  words: string;
  vendor?: string;
}

/** Ask for a vendor's key and hand it to the daemon, which keeps it in the user's own folder. */
export async function setKey(daemon: Pick<Daemon, "request">): Promise<KeySet | undefined> {
  const { vendors } = await daemon.request("amanu/auth/status", {});
  const items = vendors.map((status) => ({ label: status.vendor, description: where(status), status }));
  const chosen = await vscode.window.showQuickPick(items, {
    title: "API key",
    placeHolder: "Choose a vendor",
    ignoreFocusOut: true, // asked from the walkthrough too, which takes the focus back
  });
  if (chosen === undefined) return undefined;
  const { vendor, source } = chosen.status;
  const key = await vscode.window.showInputBox({
    title: `API key for ${vendor}`,
    prompt:
      source === "file"
        ? "Leave empty to remove the stored key."
        : "Stored in your own configuration folder, readable only by you.",
    password: true,
    ignoreFocusOut: true,
  });
  if (key === undefined) return undefined;
  const trimmed = key.trim();
  if (trimmed === "" && source !== "file") return undefined;
  await daemon.request("amanu/auth/set", { vendor, key: trimmed || null });
  if (!trimmed) return { words: "The key was removed." };
  const now = (await daemon.request("amanu/auth/status", {})).vendors.find((each) => each.vendor === vendor);
  if (now?.source !== "environment") return { words: "The key is stored.", vendor };
  const words = `The key is stored, but ${now.variable ?? "a variable"} in the environment takes precedence: remove it from amanu.server.environment, or from the environment VS Code was started in.`;
  return { words, vendor };
}

/** The model a new key of that vendor opens, where the session's own cannot answer: it is a script, or has no key. */
export async function opened(
  daemon: Pick<Daemon, "request">,
  { scripted, state }: Pick<Desk, "scripted" | "state">,
  vendor: string,
): Promise<ModelInfo | undefined> {
  const { models, defaultModelId } = await daemon.request("amanu/model/list", {});
  const current = models.find(({ modelId }) => modelId === state.modelId);
  if (!scripted && current?.available !== false) return undefined;
  const usable = models.filter(({ modelId, available }) => available && modelId.startsWith(`${vendor}:`));
  // of OpenRouter's hundreds the first means nothing
  return (
    usable.find(({ modelId }) => modelId === defaultModelId) ?? (usable.length < 60 ? usable[0] : undefined)
  );
}

function where({ source, variable, account }: AuthStatus): string {
  if (source === "environment") return `from the environment${variable ? ` (${variable})` : ""}`;
  if (source === "signIn") return `signed in as ${account}; takes precedence over a stored key`;
  if (source === "endedSignIn") return `the sign-in as ${account} has ended`;
  return source === "file" ? "stored" : "no key yet";
}
