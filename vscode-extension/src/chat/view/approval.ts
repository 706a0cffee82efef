import type { Approval, Proposal } from "../../protocol";
import { SCOPES } from "../../words";
import { approvalOf, type Desk, proposalOf } from "./desk";
import { button, h, setText } from "./dom";

/** Milliseconds after the last key before a rule is checked. */
const CHECK_AFTER = 300;

/** The question about a tool call, with every way to answer it. It never takes the focus. */
export class ApprovalBox {
  readonly element = h("div", { class: "approval", role: "group", hidden: true });
  private shown: string | undefined;
  private note = h("div", { class: "note", role: "status" });

  constructor(private readonly desk: Desk) {}

  update(approval: Approval | undefined, proposal: Proposal | undefined): void {
    this.element.hidden = approval === undefined;
    const key = approval && `${approval.toolCallId} ${approval.askedAt}`;
    if (key !== this.shown) {
      this.shown = key; // drawn once: what the person has typed or chosen meanwhile stays
      this.element.replaceChildren(...(approval ? this.draw(approval) : []));
    }
    const finish = this.element.querySelector<HTMLElement>(".finish");
    const inPart = decidedInPart(proposal);
    if (finish) finish.hidden = !inPart;
    if (approval?.proposalId) {
      const several = (proposal?.files.flatMap(({ hunks }) => hunks).length ?? 0) !== 1;
      const rest = inPart ? " the rest" : several ? " all" : "";
      this.label("allow", `Accept${rest}`);
      this.label("reject", `Reject${rest}`);
    }
  }

  private rejectRest({ proposalId, version, files }: Proposal, reason: string | null): void {
    const open = files.flatMap((file) => file.hunks).filter((hunk) => hunk.state === "pending");
    const hunks = open.map(({ hunkId }) => ({ hunkId, decision: "reject", reason }));
    if (hunks.length > 0) this.desk.post({ type: "hunks", proposalId, version, hunks });
  }

  private label(which: string, text: string): void {
    const pressed = this.element.querySelector(`button.${which}`);
    if (pressed) setText(pressed, text);
  }

  private draw(approval: Approval): HTMLElement[] {
    this.element.setAttribute("aria-label", `Your decision: ${approval.title}`);
    this.element.dataset.call = approval.toolCallId;
    this.note = h("div", { class: "note", role: "status" });
    const rule = h("input", {
      class: "rule",
      "aria-label": "Rule to remember",
      spellcheck: "false",
      hidden: true,
    });
    const scope = h("select", { class: "scope", "aria-label": "For how long" });
    for (const offer of approval.scopes)
      scope.append(h("option", { value: offer.scope }, SCOPES[offer.scope]));
    const chosen = () => approval.scopes[scope.selectedIndex];
    scope.addEventListener("change", () => {
      rule.value = chosen()?.rule ?? "";
      rule.hidden = rule.value === "";
      setText(this.note, "");
    });
    let timer: ReturnType<typeof setTimeout> | undefined;
    rule.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.desk.post({ type: "checkRule", rule: rule.value }), CHECK_AFTER);
    });
    const reason = h("input", {
      class: "reason",
      placeholder: "Reason (optional)",
      "aria-label": "Reason",
    });
    const answer = (decision: "allow" | "reject" | "finish") => {
      const offer = chosen();
      const edited = !rule.hidden && rule.value !== offer?.rule ? rule.value : null;
      const why = reason.value.trim() || null;
      const proposal = proposalOf(this.desk, approval.proposalId);
      if (decision === "reject" && proposal && (decidedInPart(proposal) || proposal.toolCallIds.length > 1)) {
        this.rejectRest(proposal, why); // what is applied already was not rejected
        return;
      }
      const others = decision === "allow" ? (proposal?.toolCallIds ?? []) : [];
      const asked = others.filter((id) => approvalOf(this.desk, id) !== undefined);
      for (const toolCallId of asked.length > 0 ? asked : [approval.toolCallId])
        this.desk.post({
          type: "resolve",
          toolCallId,
          decision,
          scope: decision === "allow" ? (offer?.scope ?? "once") : "once",
          rule: decision === "allow" ? edited : null,
          reason: why,
        });
    };
    reason.addEventListener("keydown", (event) => {
      if (event.key === "Enter") answer("reject");
    });
    const edits = approval.proposalId !== null;
    return [
      h("div", { class: "why" }, edits ? "Apply this change?" : "Allow this?", h("span", {}, approval.rule)),
      ...(edits
        ? []
        : [h("pre", { class: "detail", tabindex: "0", "aria-label": "What will happen" }, approval.detail)]),
      h(
        "div",
        { class: "row" },
        button(edits ? "Accept all" : "Allow", () => answer("allow"), { class: "primary allow" }),
        ...(approval.scopes.length > 1 ? [scope] : []),
        button("End review", () => answer("finish"), {
          class: "finish",
          title: "Go on; what is undecided stays open",
          hidden: true,
        }),
      ),
      rule,
      h(
        "div",
        { class: "row" },
        button(edits ? "Reject all" : "Reject", () => answer("reject"), { class: "reject" }),
        reason,
      ),
      this.note,
    ];
  }
}

function decidedInPart(proposal: Proposal | undefined): boolean {
  const states = proposal?.files.flatMap((file) => file.hunks.map((hunk) => hunk.state)) ?? [];
  return states.includes("pending") && states.some((state) => state !== "pending");
}
