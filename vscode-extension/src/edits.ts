import * as vscode from "vscode";
import { name, plural, seen, undoing, within } from "./changes";
import type { Daemon } from "./client";
import type { Desk } from "./desk";
import type {
  Attachment,
  AttachmentInput,
  Checkpoint,
  EditScope,
  Proposal,
  ProposalDecideParams,
  UndoneFile,
} from "./protocol";
import { plain, visible } from "./visible";

/** A way on, first in a list of what would happen. */
interface Choice<T> extends vscode.QuickPickItem {
  value: T;
}

/** What was said, as it can be said again. */
export interface Prompt {
  text: string;
  attachments: AttachmentInput[];
}

/** What the user wants of edits that are more than one open hunk: keep, undo, redo, go back. */
export class Edits {
  constructor(
    private readonly desk: Desk,
    private readonly daemon: Daemon,
    private readonly giveBack: (text: string, attachments: AttachmentInput[]) => void,
  ) {}

  /** Decide all that the scope names, of the proposals as they were seen. */
  async decide(
    scope: EditScope,
    decision: ProposalDecideParams["decision"],
    proposals: Pick<Proposal, "proposalId" | "version">[] = within(this.desk.state.proposals, scope),
  ): Promise<void> {
    if (proposals.length === 0) return this.nothing();
    const result = await this.daemon.request("amanu/proposal/decide", {
      sessionId: this.desk.state.sessionId,
      scope,
      decision,
      seen: seen(proposals),
    });
    if (result.status === "tooSoon") this.desk.tooSoon(result.proposals[0]?.toolCallIds.at(-1) ?? "");
  }

  /** Take back what is applied; where that is more than a hunk or two, the user sees first what would happen. */
  async undo(scope: EditScope, ask = ""): Promise<void> {
    const { sessionId } = this.desk.state;
    const request = (dryRun: boolean) =>
      this.daemon.request("amanu/proposal/undo", { sessionId, scope, dryRun });
    if (ask !== "") {
      const { files } = await request(true);
      const count = files.reduce((sum, file) => sum + file.undone.length, 0);
      if (count === 0) return this.cannot(files);
      const label = `$(discard) ${ask}: ${plural(count, "change")} in ${plural(files.length, "file")}`;
      const detail = "What you typed stays. It can be redone.";
      if (!(await preview("What would be taken back", [{ label, detail, value: true }], files, []))) return;
    }
    const { files } = await request(false);
    this.cannot(files);
  }

  /** The user's own text for an open hunk, without deciding it. */
  async revise(
    { proposalId, version }: Pick<Proposal, "proposalId" | "version">,
    hunkId: string,
    newText: string,
  ): Promise<Proposal> {
    const { sessionId } = this.desk.state;
    const params = { sessionId, proposalId, version, hunkId, newText };
    return (await this.daemon.request("amanu/proposal/revise", params)).proposal;
  }

  /** Apply now and review after, or take back and review before. */
  async setReview(
    { proposalId, version }: Pick<Proposal, "proposalId" | "version">,
    review: "before" | "after",
  ): Promise<void> {
    const { sessionId } = this.desk.state;
    await this.daemon.request("amanu/proposal/setReview", { sessionId, proposalId, version, review });
  }

  /** Go back to before a turn; which one, the user chooses when it is not said. */
  async restore(turnId?: string): Promise<void> {
    const { sessionId } = this.desk.state;
    const chosen = turnId ?? (await this.choose());
    if (chosen === undefined) return;
    const { files, commands, turns } = await this.daemon.request("amanu/checkpoint/preview", {
      sessionId,
      turnId: chosen,
    });
    const what = files.length === 0 ? "No file changes" : plural(files.length, "file");
    const choices: Choice<{ files: boolean; conversation: boolean }>[] = [
      ...(files.length === 0
        ? []
        : [
            {
              label: `$(discard) Restore ${plural(files.length, "file")}, keep the conversation`,
              value: { files: true, conversation: false },
            },
          ]),
      {
        label: "$(history) Restore files and conversation",
        detail: `${what}; ${plural(turns, "turn")} ${turns === 1 ? "leaves" : "leave"} the conversation, the prompt comes back into the box.`,
        value: { files: true, conversation: true },
      },
    ];
    const how = await preview("Go back to before this prompt", choices, files, commands);
    if (how === undefined) return;
    const result = await this.daemon.request("amanu/checkpoint/restore", {
      sessionId,
      turnId: chosen,
      ...how,
    });
    if (result.text !== null) {
      const lost = result.attachments.some((each) => each.kind === "image");
      const rest = result.attachments.filter((each) => each.kind !== "image");
      this.giveBack(result.text, rest);
      if (lost) this.desk.tell({ level: "info", text: "Pictures have to be attached again." });
    }
    this.cannot(result.files);
  }

  /** Take a turn and all after it out of the conversation, so that its prompt can be said anew. What that does to files
   * and what it cannot undo, the user sees first. Its prompt; undefined when the user leaves everything as it is. */
  async rewind(turnId: string): Promise<Prompt | undefined> {
    const { sessionId } = this.desk.state;
    const params = { sessionId, turnId };
    const { files, commands, turns } = await this.daemon.request("amanu/checkpoint/preview", params);
    const prompt = this.desk.state.items.find(
      (item) => item.kind === "userMessage" && item.turnId === turnId,
    );
    if (prompt?.kind !== "userMessage") return undefined;
    const attachments = await this.inputs(prompt.attachments); // while they are still of the session
    const leave = `${plural(turns, "turn")} ${turns === 1 ? "leaves" : "leave"} the conversation.`;
    const choices: Choice<boolean>[] = [
      ...(files.length > 0
        ? [
            {
              label: `$(discard) Restore ${plural(files.length, "file")} and send`,
              detail: leave,
              value: true,
            },
          ]
        : []),
      {
        label: files.length > 0 ? "$(send) Keep the files as they are and send" : "$(send) Send",
        detail: leave,
        value: false,
      },
    ];
    const plain = files.length === 0 && commands.length === 0 && turns === 1; // an answer, and nothing else
    const restore = plain ? false : await preview("Send again from here", choices, files, commands);
    if (restore === undefined) return undefined;
    const result = await this.daemon.request("amanu/checkpoint/restore", {
      ...params,
      files: restore,
      conversation: true,
    });
    this.cannot(result.files);
    return { text: prompt.text, attachments };
  }

  /** What went with a prompt, to go again. */
  async inputs(attachments: Attachment[]): Promise<AttachmentInput[]> {
    const inputs = attachments.map(async (each): Promise<AttachmentInput | undefined> => {
      if (each.kind !== "image" || each.blob === null) return each;
      const { name, mediaType, blob } = each;
      const address = await this.desk.picture(blob.blobId, mediaType);
      const data = address.slice(address.indexOf(",") + 1);
      return data === "" ? undefined : { kind: "image", name, mediaType, data };
    });
    return (await Promise.all(inputs)).filter((each) => each !== undefined);
  }

  private async choose(): Promise<string | undefined> {
    const { sessionId } = this.desk.state;
    const { checkpoints } =
      sessionId === ""
        ? { checkpoints: [] }
        : await this.daemon.request("amanu/checkpoint/list", { sessionId });
    if (checkpoints.length === 0) {
      this.desk.tell({
        level: "info",
        text: "There is nothing to go back to: no turn has changed anything.",
      });
      return undefined;
    }
    const items = checkpoints.toReversed().map((each) => ({ ...told(each), turnId: each.turnId }));
    return (await vscode.window.showQuickPick(items, { title: "Go back to before" }))?.turnId;
  }

  private cannot(files: UndoneFile[]): void {
    const skipped = files.flatMap((file) => file.skipped.map(({ reason }) => ({ file, reason })));
    const [first] = skipped;
    if (first === undefined) return;
    const more = skipped.length > 1 ? ` (and ${skipped.length - 1} more)` : "";
    this.desk.tell({
      level: "warning",
      text: `Not taken back in ${name(first.file.path)}: ${visible(first.reason)}${more}`,
    });
  }

  private nothing(): void {
    this.desk.tell({ level: "info", text: "There is nothing of that kind." });
  }
}

function told({ text, at, files, commands }: Checkpoint): vscode.QuickPickItem {
  const sum = (key: "added" | "removed") => files.reduce((total, file) => total + file[key], 0);
  const edits =
    files.length === 0 ? [] : [`${plural(files.length, "file")}, +${sum("added")} −${sum("removed")}`];
  const ran = commands.length === 0 ? [] : [plural(commands.length, "command")];
  return {
    label: plain(text),
    description: new Date(at).toLocaleTimeString(),
    detail: [...edits, ...ran].join(" · "),
  };
}

/** A list of what would happen, with the ways on above it; undefined when the user leaves. */
export function preview<T>(
  title: string,
  choices: Choice<T>[],
  files: UndoneFile[],
  commands: string[],
): Promise<T | undefined> {
  const separator = (label: string) => ({ label, kind: vscode.QuickPickItemKind.Separator });
  const pick = vscode.window.createQuickPick<vscode.QuickPickItem>();
  pick.title = title;
  pick.placeholder = "Enter does it, Escape leaves everything as it is";
  pick.ignoreFocusOut = true;
  pick.items = [
    ...choices,
    ...(files.length > 0 ? [separator("files")] : []),
    ...files.map((file) => ({
      label: `$(file) ${plain(name(file.path))}`,
      description: plain(undoing(file)),
    })),
    ...(commands.length > 0 ? [separator("commands ran since: what they changed stays")] : []),
    ...commands.map((command) => ({ label: `$(terminal) ${plain(command)}` })),
  ];
  return new Promise((resolve) => {
    pick.onDidAccept(() => {
      const chosen = choices.find((choice) => choice === pick.selectedItems[0]);
      if (chosen === undefined) return; // the rest is there to be read
      resolve(chosen.value);
      pick.hide();
    });
    pick.onDidHide(() => {
      resolve(undefined);
      pick.dispose();
    });
    pick.show();
  });
}
