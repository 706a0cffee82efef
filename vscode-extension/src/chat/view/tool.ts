import type { Decision, Item, Proposal, ToolCall, ToolCallState } from "../../protocol";
import { ApprovalBox } from "./approval";
import type { Card } from "./cards";
import { type Desk, approvalOf, deciding, proposalOf } from "./desk";
import { button, growText, h, setText } from "./dom";
import { DraftBox } from "./draft";
import { HunksBox, stat } from "./hunks";

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
  private readonly details: HTMLDetailsElement;
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
    this.details = h("details", {}, summary, this.arguments, this.open, this.output, this.draft.element);
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
    this.element.setAttribute("aria-label", `${call.title}: ${words}`);
    setText(this.mark, mark);
    setText(this.title, call.title);
    setText(this.stat, proposal ? stat(proposal.files) : "");
    setText(this.state, words);
    setText(this.arguments, argumentsText(call));
    this.draft.update(drafted ? call.output : "");
    growText(this.output, drafted ? "" : call.output);
    this.arguments.hidden = this.arguments.textContent === "";
    const path = call.arguments.path;
    this.path = typeof path === "string" && call.tool !== "list_directory" ? path : undefined;
    this.open.hidden = this.path === undefined;
    this.output.hidden = drafted || call.output === "";
    // what is live is worth seeing; what is done folds itself away, unless the person opened or closed it
    if (!this.touched)
      this.details.open =
        drafted || (call.effect === "run" && (call.state === "executing" || call.state === "failed"));
    this.said.replaceChildren(...this.remarks(call, proposal));
    this.said.hidden = this.said.childElementCount === 0;
    const here = proposal === undefined || deciding(this.desk, proposal) === call.itemId;
    this.hunks.update(here ? proposal : undefined, approval);
    this.approval.update(here ? approval : undefined, proposal);
  }

  private openFile(): void {
    if (this.path !== undefined) this.desk.post({ type: "openFile", path: this.path, line: null });
  }

  private remarks(call: ToolCall, proposal: Proposal | undefined): HTMLElement[] {
    const remarks: HTMLElement[] = [];
    if (proposal && deciding(this.desk, proposal) !== call.itemId)
      remarks.push(h("div", { class: "aside" }, "Its changes are shown with the last edit of this step."));
    if (call.error !== null) remarks.push(h("div", { class: "error" }, call.error));
    const decided = call.decision === null ? "" : decision(call.decision, this.desk.client);
    if (decided !== "") remarks.push(h("div", { class: "aside" }, decided));
    return remarks;
  }
}

/** Who or what decided; "" when there is nothing a person would want to know. */
export function decision(decided: Decision, here: string): string {
  const where = decided.client && decided.client !== here ? ` in ${decided.client}` : "";
  const why = decided.reason ? `: ${decided.reason}` : "";
  const words = {
    allowed: "Allowed",
    reviewed: "Reviewed",
    rejected: "Rejected",
    denied: "Denied",
    cancelled: "Cancelled",
  }[decided.outcome];
  if (decided.by === "person") return `${words} by you${where}${why}`;
  if (decided.outcome === "allowed") return decided.scope ? `Allowed by your rule ${decided.rule}` : "";
  return `${words}${decided.rule ? ` by the rule ${decided.rule}` : ""}${why}`;
}

function argumentsText(call: ToolCall): string {
  const given = Object.entries(call.arguments);
  // an edit's texts stand in the diff
  const shown = call.proposalId === null ? given : given.filter(([name]) => !/text|content/.test(name));
  return shown
    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join("\n");
}
