import * as vscode from "vscode";
import type { Daemon } from "./client";
import type { AuthStatus } from "./protocol";

/** Ask for a vendor's key and hand it to the daemon, which keeps it in the user's own folder. What became of it, in words. */
export async function setKey(daemon: Daemon): Promise<string | undefined> {
  const { vendors } = await daemon.request("amanu/auth/status", {});
  const items = vendors.map((status) => ({ label: status.vendor, description: where(status), status }));
  const chosen = await vscode.window.showQuickPick(items, {
    title: "API key",
    placeHolder: "Whose key?",
    ignoreFocusOut: true, // asked from the walkthrough too, which takes the focus back
  });
  if (chosen === undefined) return undefined;
  const { vendor, source } = chosen.status;
  const key = await vscode.window.showInputBox({
    title: `API key of ${vendor}`,
    prompt:
      source === "file"
        ? "Empty: forget the key that is kept."
        : "Kept in your own configuration folder, readable by you alone.",
    password: true,
    ignoreFocusOut: true,
  });
  if (key === undefined) return undefined;
  const given = key.trim();
  if (given === "" && source !== "file") return undefined;
  await daemon.request("amanu/auth/set", { vendor, key: given || null });
  if (!given) return "The key is forgotten.";
  const now = (await daemon.request("amanu/auth/status", {})).vendors.find((each) => each.vendor === vendor);
  if (now?.source !== "environment") return "The key is kept.";
  return `The key is kept, but ${now.variable ?? "a variable"} of the environment goes before it: take it out of amanu.server.environment, or of the environment VS Code was started in.`;
}

function where({ source, variable }: AuthStatus): string {
  if (source === "environment") return `from the environment${variable ? ` (${variable})` : ""}`;
  return source === "file" ? "kept" : "no key yet";
}
