import * as vscode from "vscode";
import type { Daemon } from "../daemon/client";
import type { Chat } from "../chat/chat";
import { askForKey, GET_KEY, openKeyPage } from "./keyInput";
import type { AuthStatus, ModelInfo } from "../protocol";

/** The outcome of setting a key, in words; `vendor` if a key is now set. */
export interface KeySet {
  words: string;
  vendor?: string;
}

interface KeyItem extends vscode.QuickPickItem {
  status?: AuthStatus;
}

const SIGN_IN = "Sign in with ChatGPT";

/** Ask for a provider's key, that of `vendor` when it is named; have it tested, and hand it to the daemon, which keeps it
 * in the user's own folder. The sign-in with ChatGPT stands in the same list. Undefined: the user left. */
export async function setKey(
  daemon: Pick<Daemon, "request">,
  signIn: () => Promise<KeySet | undefined>,
  vendor?: string,
): Promise<KeySet | undefined> {
  const { vendors } = await daemon.request("amanu/auth/status", {});
  const named = vendors.find((status) => status.vendor === vendor);
  const status = named ?? (await choose(vendors));
  if (status === SIGN_IN) return signIn();
  if (status === undefined) return undefined;
  const outcome = await askForKey(status, (key) => keep(daemon, status, key));
  if (outcome !== null) return outcome;
  await daemon.request("amanu/auth/set", { vendor: status.vendor, key: null });
  return { words: `The ${title(status)} key was removed.` };
}

/** The model a new key of that vendor opens, where the session's own cannot answer: it is a script, or has no key. */
export async function opened(
  daemon: Pick<Daemon, "request">,
  { scripted, state }: Pick<Chat, "scripted" | "state">,
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

/** Test the key, and keep it unless the provider refuses it. Throws the sentence that says why it does. */
async function keep(
  daemon: Pick<Daemon, "request">,
  { vendor, ...status }: AuthStatus,
  key: string,
): Promise<KeySet> {
  const checked = await daemon.request("amanu/auth/check", { vendor, key });
  if (checked.status === "refused") throw new Error(checked.summary);
  await daemon.request("amanu/auth/set", { vendor, key });
  const tested = checked.status === "accepted" ? checked.summary : `The key was stored. ${checked.summary}`;
  if (status.source !== "environment") return { words: tested, vendor };
  const variable = status.variable ?? "a variable";
  const words = `The key is stored, but ${variable} in the environment takes precedence: remove it from amanu.server.environment, or from the environment VS Code was started in.`;
  return { words, vendor };
}

/** The provider whose key is to be set, or the words for signing in. */
function choose(vendors: AuthStatus[]): Promise<AuthStatus | typeof SIGN_IN | undefined> {
  const pick = vscode.window.createQuickPick<KeyItem>();
  pick.title = "API Keys";
  pick.placeholder = "Choose a provider, or sign in";
  pick.matchOnDescription = true;
  pick.ignoreFocusOut = true; // asked from the walkthrough too, which takes the focus back
  const openai = vendors.find(({ vendor }) => vendor === "openai");
  pick.items = [
    ...vendors.map(row),
    { label: "Without a key", kind: vscode.QuickPickItemKind.Separator },
    {
      label: SIGN_IN,
      iconPath: new vscode.ThemeIcon("account"),
      description: openai?.account ? `signed in as ${openai.account}` : "uses your ChatGPT plan",
    },
  ];
  return new Promise((resolve) => {
    let chosen: AuthStatus | typeof SIGN_IN | undefined;
    pick.onDidTriggerItemButton(({ item }) => item.status && openKeyPage(item.status));
    pick.onDidAccept(() => {
      const [item] = pick.selectedItems;
      chosen = item?.label === SIGN_IN ? SIGN_IN : item?.status;
      pick.hide();
    });
    pick.onDidHide(() => {
      pick.dispose();
      resolve(chosen);
    });
    pick.show();
  });
}

function row(status: AuthStatus): KeyItem {
  const missing = status.source === "none" || status.source === "endedSignIn";
  return {
    label: title(status),
    description: [status.about, where(status)].filter(Boolean).join(" · "),
    iconPath: new vscode.ThemeIcon(missing ? "key" : "pass-filled"),
    buttons: status.page ? [GET_KEY] : [],
    status,
  };
}

function title(status: AuthStatus): string {
  return status.title || status.vendor;
}

function where({ source, variable, account }: AuthStatus): string {
  if (source === "environment") return `from the environment${variable ? ` (${variable})` : ""}`;
  if (source === "signIn") return `signed in as ${account}; takes precedence over a stored key`;
  if (source === "endedSignIn") return `the sign-in as ${account} has ended`;
  return source === "file" ? "key stored" : "";
}
