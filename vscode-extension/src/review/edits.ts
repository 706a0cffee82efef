import * as vscode from "vscode";
import { hunksOf, name, plural, seen, undoing, within } from "./changes";
import type { Daemon } from "../daemon/client";
import { tooSoon } from "../chat/chat";
import type { OpenChats } from "../chat/openChats";
import type {
  AttachmentInput,
  Checkpoint,
  EditScope,
  HunkDecision,
  Proposal,
  ProposalDecideParams,
  ProposalReviseResult,
  RowDecision,
  UndoneFile,
} from "../protocol";
import type { Sessions } from "../sessions/sessions";
import { plain, visible } from "../editor/visible";

type Version = Pick<Proposal, "proposalId" | "version">;

/** The hunks and rows that are to be made again. */
type RetryScope = Pick<EditScope, "hunkIds" | "rowIds">;

/** The decisions on a proposal's changes. */
export interface Decided {
  hunks: HunkDecision[];
  rows: RowDecision[];
}

/** A way on, first in a list of what would happen. */
interface Choice<T> extends vscode.QuickPickItem {
  value: T;
}

/** What the user wants of a session's edits: accept, reject, keep, undo, redo, go back. */
export class Edits {
  constructor(
    private readonly sessions: Pick<Sessions, "get">,
    private readonly openChats: Pick<OpenChats, "tell">,
    private readonly daemon: Pick<Daemon, "request">,
    private readonly giveBack: (sessionId: string, text: string, attachments: AttachmentInput[]) => void,
  ) {}

  /** Decide hunks and rows of the proposal as it was seen. */
  async resolve(
    sessionId: string,
    { proposalId, version }: Version,
    { hunks, rows }: Decided,
  ): Promise<void> {
    const params = { sessionId, proposalId, version, hunks, rows };
    const { status, proposal } = await this.daemon.request("amanu/proposal/resolve", params);
    if (status === "tooSoon")
      return this.openChats.tell(tooSoon(proposal.toolCallIds.at(-1) ?? ""), sessionId);
    const decided = [...hunks.map(({ hunkId }) => hunkId), ...rows.map(({ rowId }) => rowId)];
    const conflict = hunksOf(proposal).find(
      ({ state, hunkId }) => state === "conflicted" && decided.includes(hunkId),
    );
    if (conflict !== undefined)
      this.openChats.tell(
        { level: "warning", text: conflict.reason ?? "The file has changed: nothing was overwritten." },
        sessionId,
      );
  }

  /** Decide all that the scope names, of the proposals as they were seen. */
  async decide(
    sessionId: string,
    scope: EditScope,
    decision: ProposalDecideParams["decision"],
    proposals: Version[] = within(this.sessions.get(sessionId)?.state.proposals ?? [], scope),
  ): Promise<void> {
    if (proposals.length === 0) return this.nothing(sessionId);
    const result = await this.daemon.request("amanu/proposal/decide", {
      sessionId,
      scope,
      decision,
      seen: seen(proposals),
    });
    if (result.status === "tooSoon")
      this.openChats.tell(tooSoon(result.proposals[0]?.toolCallIds.at(-1) ?? ""), sessionId);
  }

  /** Take back what is applied; where that is more than a hunk or two, the user sees first what would happen. */
  async undo(sessionId: string, scope: EditScope, ask = ""): Promise<void> {
    const request = (dryRun: boolean) =>
      this.daemon.request("amanu/proposal/undo", { sessionId, scope, dryRun });
    if (ask !== "") {
      const { files } = await request(true);
      const count = files.reduce((sum, file) => sum + file.undone.length, 0);
      if (count === 0) return this.cannot(sessionId, files);
      const label = `$(discard) ${ask}: ${plural(count, "change")} in ${plural(files.length, "file")}`;
      const detail = "Your own edits stay. You can redo this.";
      if (!(await preview("Changes to undo", [{ label, detail, value: true }], files, []))) return;
    }
    const { files, note } = await request(false);
    this.cannot(sessionId, files);
    if (note) this.openChats.tell({ level: "info", text: visible(note) }, sessionId);
  }

  /** An edited copy of a file's proposed text, without deciding anything. */
  revise(
    sessionId: string,
    { proposalId, version }: Version,
    path: string,
    newText: string,
    seenText: string | null,
  ): Promise<ProposalReviseResult> {
    const params = { sessionId, proposalId, version, path, newText, seenText };
    return this.daemon.request("amanu/proposal/revise", params);
  }

  /** Have the model make changes again, on the files as they are now. */
  async retry(sessionId: string, { proposalId, version }: Version, scope: RetryScope): Promise<void> {
    const { hunkIds = null, rowIds = null } = scope;
    const params = { sessionId, proposalId, version, hunkIds, rowIds };
    const { status, proposal } = await this.daemon.request("amanu/proposal/retry", params);
    if (status === "tooSoon") this.openChats.tell(tooSoon(proposal.toolCallIds.at(-1) ?? ""), sessionId);
  }

  /** Apply now and review after, or take back and review before. */
  async setReview(
    sessionId: string,
    { proposalId, version }: Version,
    review: "before" | "after",
  ): Promise<void> {
    await this.daemon.request("amanu/proposal/setReview", { sessionId, proposalId, version, review });
  }

  /** Go back to before a turn; which one, the user chooses when it is not said. */
  async restore(sessionId: string, turnId?: string): Promise<void> {
    const chosen = turnId ?? (await this.choose(sessionId));
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
    const how = await preview("Restore the checkpoint before this prompt", choices, files, commands);
    if (how === undefined) return;
    const result = await this.daemon.request("amanu/checkpoint/restore", {
      sessionId,
      turnId: chosen,
      ...how,
    });
    if (result.text !== null) {
      const lost = result.attachments.some((each) => each.kind === "image");
      const rest = result.attachments.filter((each) => each.kind !== "image");
      this.giveBack(sessionId, result.text, rest);
      if (lost) this.openChats.tell({ level: "info", text: "Images have to be attached again." }, sessionId);
    }
    this.cannot(sessionId, result.files);
  }

  /** Take a turn and all after it out of the conversation, so that its prompt can be said anew. What that does to files
   * and what it cannot undo, the user sees first; false when they leave everything as it is. */
  async rewind(sessionId: string, turnId: string): Promise<boolean> {
    const params = { sessionId, turnId };
    const { files, commands, turns } = await this.daemon.request("amanu/checkpoint/preview", params);
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
    if (restore === undefined) return false;
    const result = await this.daemon.request("amanu/checkpoint/restore", {
      ...params,
      files: restore,
      conversation: true,
    });
    this.cannot(sessionId, result.files);
    return true;
  }

  private async choose(sessionId: string): Promise<string | undefined> {
    const { checkpoints } =
      sessionId === ""
        ? { checkpoints: [] }
        : await this.daemon.request("amanu/checkpoint/list", { sessionId });
    if (checkpoints.length === 0) {
      const text = "There is no checkpoint: nothing has been asked yet.";
      this.openChats.tell({ level: "info", text }, sessionId);
      return undefined;
    }
    const items = checkpoints.toReversed().map((each) => ({ ...told(each), turnId: each.turnId }));
    return (await vscode.window.showQuickPick(items, { title: "Restore Checkpoint: Before Which Prompt?" }))
      ?.turnId;
  }

  private cannot(sessionId: string, files: UndoneFile[]): void {
    const skipped = files.flatMap((file) => file.skipped.map(({ reason }) => ({ file, reason })));
    const [first] = skipped;
    if (first === undefined) return;
    const more = skipped.length > 1 ? ` (and ${skipped.length - 1} more)` : "";
    const text = `Not undone in ${name(first.file.path)}: ${visible(first.reason)}${more}`;
    this.openChats.tell({ level: "warning", text }, sessionId);
  }

  private nothing(sessionId: string): void {
    this.openChats.tell({ level: "info", text: "There are no such changes." }, sessionId);
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
  pick.placeholder = "Press Enter to confirm or Escape to cancel";
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
