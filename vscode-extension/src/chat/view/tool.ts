import type { Item, Proposal, ToolCall, ToolCallState } from "../../protocol";
import { oneLine, visible } from "../../visible";
import { decision } from "../../words";
import type { ToView } from "../messages";
import { ApprovalBox } from "./approval";
import type { Card } from "./cards";
import { type Desk, approvalOf, deciding, proposalOf } from "./desk";
import { button, growText, h, setText } from "./dom";
import { DraftBox } from "./draft";
import { HunksBox, stat } from "./hunks";
import { sandboxLine } from "./sandbox";

/** Characters of a title: the daemon cuts it, too. */
const TITLE = 200;

const STATES: Record<ToolCallState, [mark: string, words: string]> = {
  validating: ["◌", "being prepared"],
  awaitingApproval: ["?", "waits for you"],
  scheduled: ["◌", "about to run"],
  executing: ["◌", "running"],
  succeeded: ["✓", "done"],
  failed: ["✗", "failed"],
  cancelled: ["–", "cancelled"],
  rejected: ["✗", "rejected"],
};

/** A tool call: what it does, how far it is, what it said; the question about it, and the changes it proposes. */
export class ToolCard implements Card {
  private readonly mark = h("span", { class: "mark", "aria-hidden": "true" });
  private readonly title = h("span", { class: "title" });
  private readonly stat = h("span", { class: "stat" });
  private readonly state = h("span", { class: "state" });
  private readonly arguments = h("pre", { class: "arguments", "aria-label": "Arguments", tabindex: "0" });
  private readonly output = h("pre", { class: "output", "aria-label": "Output", tabindex: "0" });
  private readonly draft = new DraftBox();
  private readonly open = button("Open the file", () => this.openFile(), { class: "link" });
  private readonly terminal = button("Show in Terminal", () => this.showInTerminal(), {
    class: "link terminal",
    hidden: true,
  });
  private readonly details: HTMLDetailsElement;
  private callId = "";
  private readonly record = h("div", { class: "record", hidden: true });
  private path: string | undefined;
  private readonly said = h("div", { class: "said" });
  private readonly approval: ApprovalBox;
  private readonly hunks: HunksBox;
  readonly element: HTMLElement;
  private touched = false;

  constructor(private readonly desk: Desk) {
    this.approval = new ApprovalBox(desk);
    this.hunks = new HunksBox(desk);
    const summary = h(
      "summary",
      { onclick: () => (this.touched = true) },
      this.mark,
      this.title,
      this.stat,
      this.state,
    );
    this.details = h(
      "details",
      {},
      summary,
      this.arguments,
      this.open,
      this.output,
      this.terminal,
      this.draft.element,
      this.record,
    );
    this.element = h(
      "article",
      { class: "card tool" },
      this.details,
      this.said,
      this.hunks.element,
      this.approval.element,
    );
  }

  update(item: Item): void {
    const call = item as ToolCall;
    const drafted = call.state === "validating" && call.output !== "";
    const [mark, words] = drafted ? ["◌", "draft, being written"] : STATES[call.state];
    const approval = approvalOf(this.desk, call.itemId);
    const proposal = proposalOf(this.desk, call.proposalId);
    this.element.dataset.state = call.state;
    const title = oneLine(call.title, TITLE);
    this.element.setAttribute("aria-label", `${title}: ${words}`);
    setText(this.mark, mark);
    setText(this.title, title);
    setText(this.stat, proposal ? stat(proposal.files) : "");
    setText(this.state, words);
    setText(this.arguments, argumentsText(call));
    this.draft.update(drafted ? call.output : "");
    growText(this.output, drafted ? "" : call.output);
    this.arguments.hidden = this.arguments.textContent === "";
    const path = call.arguments.path;
    this.path = typeof path === "string" && call.tool !== "list_directory" ? path : undefined;
    this.open.hidden = this.path === undefined;
    this.callId = call.itemId;
    this.terminal.hidden = !runs(call, this.desk);
    this.output.hidden = drafted || call.output === "";
    // what is live is worth seeing; what is done folds itself away, unless the user opened or closed it
    if (!this.touched)
      this.details.open =
        drafted || (call.effect === "run" && (call.state === "executing" || call.state === "failed"));
    this.said.replaceChildren(...this.remarks(call, proposal, approval !== undefined));
    this.said.hidden = this.said.childElementCount === 0;
    const here = proposal === undefined || deciding(this.desk, proposal) === call.itemId;
    this.hunks.update(here ? proposal : undefined, approval);
    this.approval.update(here ? approval : undefined, proposal);
    this.remember(call);
  }

  checked(message: Extract<ToView, { type: "rule" }>): void {
    this.approval.checked(message);
  }

  /** Behind the card, as far as it is not said on it: who decided, what held it, and the way to the audit log. */
  private remember(call: ToolCall): void {
    const open = call.decision === null || call.state === "awaitingApproval"; // what was said to another digest is void
    this.record.hidden = open;
    if (call.decision === null || open) return;
    const audit = () => this.desk.post({ type: "audit", toolCallId: call.itemId, title: call.title });
    this.record.replaceChildren(
      telling(call) ? "" : h("span", { class: "aside" }, decision(call.decision, this.desk.client)),
      call.sandbox === null || call.sandbox.tier === "none" ? "" : sandboxLine(call.sandbox),
      button("Audit", audit, { class: "link", title: "What the audit log knows of this call" }),
    );
  }

  private showInTerminal(): void {
    this.desk.post({ type: "showCommand", toolCallId: this.callId });
  }

  private openFile(): void {
    if (this.path !== undefined) this.desk.post({ type: "openFile", path: this.path, line: null });
  }

  private remarks(call: ToolCall, proposal: Proposal | undefined, asked: boolean): HTMLElement[] {
    const remarks: HTMLElement[] = [];
    if (proposal && deciding(this.desk, proposal) !== call.itemId)
      remarks.push(h("div", { class: "aside" }, "Its changes are shown with the last edit of this step."));
    const { parentSessionId } = this.desk.session.state;
    if (call.state === "awaitingApproval" && !asked && parentSessionId)
      remarks.push(h("div", { class: "aside" }, "Answer it in the session this agent works for."));
    if (call.error !== null) remarks.push(h("div", { class: "error" }, visible(call.error)));
    if (call.decision !== null && telling(call) && !asked)
      remarks.push(h("div", { class: "aside" }, decision(call.decision, this.desk.client)));
    if (call.sandbox?.tier === "none") remarks.push(sandboxLine(call.sandbox));
    return remarks;
  }
}

/** It is a command that runs now, in a turn or in the background. */
function runs({ itemId, tool, state }: ToolCall, { session }: Desk): boolean {
  if (tool !== "run_shell_command") return false;
  const job = session.state.jobs.find(({ toolCallId }) => toolCallId === itemId);
  return state === "executing" || job?.state === "running";
}

/** Worth a line of its own: what a rule of the mode allowed is not. */
function telling({ decision: decided }: ToolCall): boolean {
  return decided?.by === "user" || decided?.outcome !== "allowed" || decided.scope !== null;
}

function argumentsText(call: ToolCall): string {
  const given = Object.entries(call.arguments);
  // an edit's texts stand in the diff
  const shown = call.proposalId === null ? given : given.filter(([name]) => !/text|content/.test(name));
  return shown
    .map(([name, value]) => visible(`${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`))
    .join("\n");
}
