import * as vscode from "vscode";
import { plural } from "../review/changes";
import { type Daemon, roots } from "./client";
import type { OpenChats } from "../chat/openChats";
import type { Pages } from "../editor/pages";
import { TRUST } from "../labels";
import type { TrustGetResult } from "../protocol";
import { name } from "../review/changes";
import { oneLine, plain, visible } from "../editor/visible";

const PAGE = "Amanu Trust.diff";

interface Choice extends vscode.QuickPickItem {
  run?(): Promise<unknown>;
}

/** *Amanu: Review What This Folder Enables*: what trust would let Amanu read as instructions, and the user's word. */
export class Trust {
  constructor(
    private readonly openChats: OpenChats,
    private readonly daemon: Daemon,
    private readonly pages: Pages,
  ) {}

  /** Of several folders the user chooses one. */
  async review(): Promise<void> {
    const folders = roots();
    const root = folders.length > 1 ? await choose(folders) : folders[0];
    if (root === undefined) {
      if (folders.length === 0) this.openChats.tell({ level: "info", text: "No folder is open." });
      return;
    }
    const found = await this.daemon.request("amanu/trust/get", { root });
    await this.pages.show(PAGE, enabled(root, found), "diff");
    await this.ask(root, found);
  }

  /** The page stays beside the question. */
  private async ask(root: string, found: TrustGetResult): Promise<void> {
    const chosen = await vscode.window.showQuickPick<Choice>(this.choices(root, found), {
      title: `Trust ${plain(name(root))}?`,
      placeHolder: TRUST[found.state],
      ignoreFocusOut: true, // reading the page is not an answer
    });
    await chosen?.run?.();
  }

  private choices(root: string, { state, enables, digest }: TrustGetResult): Choice[] {
    const there = enables.filter((each) => each.state !== "gone");
    const what = there.length === 0 ? "it enables nothing" : `${plural(there.length, "file")}, as shown`;
    const set = async (trusted: boolean) => {
      await this.daemon.request("amanu/trust/set", { root, trusted, digest: trusted ? digest : null });
      const text = trusted ? "The folder is now trusted." : "The folder is not trusted.";
      this.openChats.tell({ level: "info", text });
    };
    const yes: Choice = { label: "$(shield) Trust", description: what, run: () => set(true) };
    const no: Choice = {
      label: "$(circle-slash) Do not trust",
      description: "nothing of it is read as instructions",
      run: () => set(false),
    };
    // what stands first is what Enter chooses: who only came to look changes nothing by it
    const leave: Choice = { label: "$(check) Leave it trusted", description: what };
    // VS Code's own answer goes first
    const manage: Choice = {
      label: "$(shield) Manage VS Code's workspace trust…",
      description: "VS Code does not trust this folder, so Amanu does not either",
      run: async () => vscode.commands.executeCommand("workbench.trust.manage"),
    };
    const asked = !vscode.workspace.isTrusted ? [manage] : state === "trusted" ? [leave, no] : [no, yes];
    return [
      ...asked,
      ...(enables.length > 0 ? [{ label: "what it enables", kind: vscode.QuickPickItemKind.Separator }] : []),
      ...enables.map((each) => ({ label: `$(file) ${plain(each.path)}`, description: plain(each.summary) })),
    ];
  }
}

/** The page: what the folder enables, and what is new or changed of it. */
export function enabled(root: string, { lines, enables }: TrustGetResult): string {
  const text = [oneLine(root, 1000), "", ...lines.map((line) => visible(line.text))];
  for (const { path, diff } of enables.filter((each) => each.diff !== ""))
    text.push("", `=== ${oneLine(path, 1000)}`, visible(diff).trimEnd());
  return `${text.join("\n")}\n`;
}

async function choose(folders: string[]): Promise<string | undefined> {
  const items = folders.map((root) => ({ label: plain(name(root)), description: plain(root), root }));
  return (await vscode.window.showQuickPick(items, { placeHolder: "Which folder?" }))?.root;
}
