import { changesOf, hunksOf, isDecidable, name, seen } from "../../review/changes";
import type { Approval, Hunk, HunkState, Item, Proposal, ToolCall, ToolCallState } from "../../protocol";
import { oneLine, visible } from "../../editor/visible";
import { decision } from "../../sessions/words";
import type { ToView } from "../messages";
import { ApprovalBox } from "./approval";
import { type Card, type ChatView, approvalOf, deciding, proposalOf } from "./chatView";
import { button, growText, h, setText } from "./dom";
import { LiveEditBox } from "./liveEdit";
import { HunksBox, stat } from "./hunks";
import { icon, iconButton, setIcon } from "./icon";
import { sandboxLine } from "./sandbox";

/** Characters of a title: the daemon cuts it, too. */
const TITLE = 200;

const STATES: Record<ToolCallState, [icon: string, words: string]> = {
  validating: ["loading", "being prepared"],
  awaitingApproval: ["question", "waiting for you"],
  scheduled: ["loading", "about to run"],
  executing: ["loading", "running"],
  succeeded: ["check", "done"],
  failed: ["error", "failed"],
  cancelled: ["circle-slash", "cancelled"],
  rejected: ["close", "rejected"],
};
const RUN = "run_shell_command";

function stateOf(call: ToolCall): [icon: string, words: string] {
  return call.warns && call.state === "succeeded" ? ["warning", "done, with a failure"] : STATES[call.state];
}

/** A tool call on one line: what it does, how it went. Behind it, or below it while the user is asked or it runs, stand
 * its arguments and output, the question about it, and the changes it proposes. */
export class ToolCard implements Card {
  private readonly mark = icon("loading");
  private readonly title = h("span", { class: "title" });
  private readonly summary = h("span", { class: "went" });
  private readonly stat = h("span", { class: "stat" });
  private readonly state = h("span", { class: "state" });
  /** Keep and undo, of what a rule applied. */
  private readonly keeping = h("span", { class: "keeping" });
  private readonly arguments = h("pre", { class: "arguments", "aria-label": "Arguments", tabindex: "0" });
  private readonly output = h("pre", { class: "output", "aria-label": "Output", tabindex: "0" });
  private readonly liveEdit = new LiveEditBox();
  private readonly terminal = button("Show in Terminal", () => this.showInTerminal(), {
    class: "link terminal",
    hidden: true,
  });
  private readonly details: HTMLDetailsElement;
  private callId = "";
  private readonly record = h("div", { class: "record", hidden: true });
  private readonly said = h("div", { class: "said" });
  private readonly approval: ApprovalBox;
  private readonly hunks: HunksBox;
  /** Around the changes: what is decided is folded away with the rest. */
  private readonly changes: HTMLElement;
  readonly element: HTMLElement;
  private touched = false;
  /** It is asked about what the command changed. */
  private ran = false;
  /** Nothing of it waits for the user. */
  private settled = true;

  constructor(private readonly view: ChatView) {
    this.approval = new ApprovalBox(view);
    this.hunks = new HunksBox(view);
    this.changes = h("div", { class: "proposed" }, this.hunks.element);
    this.details = h(
      "details",
      { ontoggle: () => this.toggled() },
      h(
        "summary",
        { onclick: () => (this.touched = true) },
        h("span", { class: "mark" }, this.mark),
        this.title,
        this.summary,
        this.stat,
        this.state,
        this.keeping,
      ),
      this.arguments,
      this.output,
      this.terminal,
      this.liveEdit.element,
      this.record,
    );
    this.element = h(
      "article",
      { class: "card tool" },
      this.details,
      this.said,
      this.changes,
      this.approval.element,
    );
  }

  update(item: Item): void {
    // a daemon from before it said how calls went is still a daemon
    const call = { ...(item as ToolCall), summary: (item as ToolCall).summary ?? "" };
    const live = call.state === "validating" && call.output !== "";
    const [mark, words] = live ? ["loading", "being written"] : stateOf(call);
    const approval = approvalOf(this.view, call.itemId);
    const proposal = proposalOf(this.view, call.proposalId);
    const here = proposal === undefined || deciding(this.view, proposal) === call.itemId;
    const ended = call.state === "succeeded" || call.state === "failed";
    const title = oneLine(call.title, TITLE);
    const settled = proposal && ended ? settlement(proposal) : words;
    // the changes of a command that failed may be good all the same
    const how =
      proposal && settled !== "" && call.tool === RUN && call.state === "failed"
        ? `failed · ${settled}`
        : settled;
    // a command whose changes are asked about has run: what it printed is part of the question
    const isShown = stands(approval, call);
    const ran = (this.ran = approval !== undefined && call.tool === RUN && !isShown);
    this.settled = approval === undefined && !(here && proposal && isOpen(proposal));
    this.element.dataset.state = call.warns && call.state === "succeeded" ? "warns" : call.state;
    this.element.classList.toggle("settled", this.settled);
    this.element.setAttribute("aria-label", `${title}: ${[how, call.summary].filter(Boolean).join(", ")}`);
    setIcon(this.mark, mark);
    this.name(call, proposal, isShown ? "Run a command" : title);
    setText(this.summary, ran || proposal ? "" : visible(call.summary));
    setText(this.stat, proposal && here ? stat(proposal.files) : ""); // said once, of all it took
    setText(this.state, ended && (!proposal || how === "") ? failure(call) : how);
    setText(this.arguments, argumentsText(call));
    this.liveEdit.update(live ? call.output : "");
    growText(this.output, live ? "" : call.output);
    this.callId = call.itemId;
    this.terminal.hidden = !runs(call, this.view);
    this.arguments.hidden = this.arguments.textContent === "" || (call.state === "awaitingApproval" && !ran);
    this.output.hidden = live || call.output === "" || call.output === call.summary;
    // what is live is worth seeing; what is done folds itself away, unless the user opened or closed it
    if (!this.touched)
      this.details.open =
        live ||
        (call.effect === "run" && call.state === "executing" && call.output !== "") ||
        (ran && !(this.output.hidden && this.arguments.hidden));
    this.said.replaceChildren(...this.remarks(call, proposal, approval !== undefined));
    this.said.hidden = this.said.childElementCount === 0;
    this.hunks.update(here ? proposal : undefined, approval);
    this.approval.update(here ? approval : undefined, proposal);
    this.remember(call);
    this.offerKeeping(here && proposal && this.settled ? proposal : undefined);
    this.fold();
  }

  /** The title, with the file it names as a link: to the change, or to the lines that were read. */
  private name(call: ToolCall, proposal: Proposal | undefined, title: string): void {
    const path = pathOf(call);
    const at = path === undefined ? -1 : title.lastIndexOf(path);
    if (path === undefined || at < 0) setText(this.title, title);
    else if (this.title.title !== title || this.title.dataset.proposal !== (call.proposalId ?? "")) {
      const line = call.arguments.start_line;
      const [file, ...others] = proposal?.files ?? [];
      const press = () =>
        file && proposal && others.length === 0
          ? this.view.post({ type: "openDiff", proposalId: proposal.proposalId, path: file.path })
          : this.view.post({ type: "openFile", path, line: typeof line === "number" ? line : null });
      const words = proposal ? `Open the diff of ${path}` : `Open ${path}`;
      this.title.replaceChildren(
        visible(title.slice(0, at)),
        button(name(path), press, { class: "link file", title: words }),
        visible(title.slice(at + path.length)),
      );
      this.title.dataset.proposal = call.proposalId ?? "";
    }
    this.title.title = title;
  }

  /** What a rule applied is kept or undone without unfolding it. */
  private offerKeeping(proposal: Proposal | undefined): void {
    const waiting = proposal && decidable(proposal).some((hunk) => hunk.waits === "review");
    const key = proposal && waiting ? `${proposal.proposalId} ${proposal.version}` : "";
    if (this.keeping.dataset.drawn === key) return; // a button that is drawn anew loses the focus
    this.keeping.dataset.drawn = key;
    if (proposal === undefined || !waiting) return this.keeping.replaceChildren();
    const scope = { proposalId: proposal.proposalId };
    const keep = () => this.view.post({ type: "decide", scope, decision: "keep", seen: seen([proposal]) });
    this.keeping.replaceChildren(
      iconButton("check", "Keep", keep, { class: "keep" }),
      iconButton("discard", "Undo", () => this.view.post({ type: "undo", scope }), { class: "undo" }),
    );
  }

  private toggled(): void {
    this.fold();
    if (this.ran && this.details.open) this.output.scrollTop = this.output.scrollHeight; // how it ended
  }

  /** What is decided is behind the line. */
  private fold(): void {
    this.changes.hidden = this.settled && !this.details.open;
  }

  checked(message: Extract<ToView, { type: "rule" }>): void {
    this.approval.checked(message);
  }

  /** Behind the card, as far as it is not said on it: who decided, what held it, and the way to the audit log. */
  private remember(call: ToolCall): void {
    const open = call.decision === null || call.state === "awaitingApproval"; // what was said to another digest is void
    this.record.hidden = open;
    if (call.decision === null || open) return;
    const audit = () => this.view.post({ type: "audit", toolCallId: call.itemId, title: call.title });
    this.record.replaceChildren(
      telling(call) ? "" : h("span", { class: "aside" }, decision(call.decision, this.view.client)),
      call.sandbox === null || call.sandbox.tier === "none" ? "" : sandboxLine(call.sandbox),
      button("Audit", audit, { class: "link", title: "Show this call in the audit log" }),
    );
  }

  private showInTerminal(): void {
    this.view.post({ type: "showCommand", toolCallId: this.callId });
  }

  private remarks(call: ToolCall, proposal: Proposal | undefined, asked: boolean): HTMLElement[] {
    const remarks: HTMLElement[] = [];
    if (proposal && deciding(this.view, proposal) !== call.itemId && isOpen(proposal))
      remarks.push(h("div", { class: "aside" }, "Its changes are shown further down."));
    const { parentSessionId } = this.view.session.state;
    if (call.state === "awaitingApproval" && !asked && parentSessionId)
      remarks.push(h("div", { class: "aside" }, "Answer it in the parent session."));
    if (call.error !== null && call.state !== "cancelled")
      remarks.push(h("div", { class: "error" }, visible(call.error)));
    if (call.decision !== null && telling(call) && !asked)
      remarks.push(h("div", { class: "aside" }, decision(call.decision, this.view.client)));
    if (call.sandbox?.tier === "none") remarks.push(sandboxLine(call.sandbox));
    return remarks;
  }
}

/** The question about a command shows the whole of it. */
function stands(approval: Approval | undefined, { tool, arguments: { command } }: ToolCall): boolean {
  if (approval === undefined || tool !== RUN || typeof command !== "string") return false;
  return `${visible(approval.detail)}\n`.startsWith(`${visible(command)}\n`);
}

/** It is a command that runs now, in a turn or in the background. */
function runs({ itemId, tool, state }: ToolCall, { session }: ChatView): boolean {
  if (tool !== RUN) return false;
  const job = session.state.jobs.find(({ toolCallId }) => toolCallId === itemId);
  return state === "executing" || job?.state === "running";
}

/** Worth a line of its own: a no is. */
function telling({ decision: decided }: ToolCall): boolean {
  return decided?.outcome !== "allowed";
}

/** Whether anything in it is to be decided now; what is applied can be looked at later. */
function isOpen(proposal: Proposal): boolean {
  return decidable(proposal).some((hunk) => hunk.waits === "decision");
}

function decidable(proposal: Proposal): Hunk[] {
  return changesOf(proposal)
    .filter(isDecidable)
    .flatMap(({ file }) => file.hunks);
}

/** How the decisions on an edit went: "applied", "accepted 2 of 3", "rejected"; "" while there are none. */
export function settlement(proposal: Proposal): string {
  const states = hunksOf(proposal).map(({ state }) => state);
  const count = (...wanted: HunkState[]) => states.filter((state) => wanted.includes(state)).length;
  const [applied, rejected, undone] = [count("applied"), count("rejected"), count("reverted")];
  if (states.length === 0 || applied + rejected + undone === 0) return "";
  if (applied === states.length) return "applied";
  if (rejected === states.length) return "rejected";
  if (undone === states.length) return "undone";
  return `accepted ${applied} of ${states.length}`;
}

/** Beside a failure that says nothing else of itself. */
function failure(call: ToolCall): string {
  return call.state === "failed" && call.summary === "" ? "failed" : "";
}

/** The file a call is about, as the model named it. */
function pathOf({ arguments: { path }, tool }: ToolCall): string | undefined {
  return typeof path === "string" && path !== "" && tool !== "list_directory" ? path : undefined;
}

/** The arguments that the line does not tell. */
function argumentsText({ arguments: given, proposalId, title }: ToolCall): string {
  return Object.entries(given)
    .filter(([name]) => proposalId === null || !/text|content/.test(name)) // an edit's texts stand in the diff
    .filter(
      ([, value]) =>
        typeof value !== "string" || !(title.endsWith(value) || title.startsWith(`Run ${value}: `)),
    )
    .map(([name, value]) => visible(`${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`))
    .join("\n");
}
