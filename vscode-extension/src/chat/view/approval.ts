import { changesOf, extent, hunksOf, isDecidable, withHunks } from "../../review/changes";
import type { Approval, ApprovalAnswer, Proposal } from "../../protocol";
import { visible } from "../../editor/visible";
import { CommandField } from "./command";
import { BUTTONS, SCOPES } from "../../labels";
import { yes } from "../../sessions/answers";
import { reasons, wanted } from "../../sessions/words";
import type { ToView } from "../messages";
import { type ChatView, proposalOf } from "./chatView";
import { Detail } from "./detail";
import { button, h, setText } from "./dom";
import { Grants } from "./grants";
import { hunksMessage } from "./hunks";
import { partsList } from "./parts";
import { planForm } from "./plan";
import { RuleField } from "./rule";
import { toned } from "./toned";

const EDITED = "This is the command as you changed it. Nothing has run yet.";
const NOT_KEPT = "What is kept must grant what the next call like this one needs, too.";
const AGAIN = "This has changed since you were asked, and nothing was done. Read it again.";

/** The question about a tool call, with all that is known of it and every way to answer it. It never takes the focus. */
export class ApprovalBox {
  readonly element = h("div", { class: "approval", role: "group", hidden: true });
  /** As it was last told; of a proposal the digest moves on with what is decided of it. */
  private asked: Approval | undefined;
  /** The question that is drawn, and the one before it about the same call, answered or not. */
  private shown = "";
  private before: Approval | undefined;
  private note = h("div", { class: "note", role: "status" });
  private rule: RuleField | undefined;
  private allow: HTMLButtonElement | undefined;
  /** The words after a yes: for how long, and with what. */
  private added = "";
  /** The user's own command, which was sent and may be asked about now. */
  private written: string | undefined;

  constructor(private readonly view: ChatView) {}

  update(approval: Approval | undefined, proposal: Proposal | undefined): void {
    this.element.hidden = approval === undefined;
    this.asked = approval;
    if (key(approval) !== this.shown) {
      this.shown = key(approval); // drawn once: what the user has typed or chosen meanwhile stays
      this.element.replaceChildren(...(approval ? this.draw(approval) : []));
      const again = approval !== undefined && this.before?.toolCallId === approval.toolCallId;
      this.element.classList.toggle("again", again);
      const edited = approval?.command != null && approval.command === this.written;
      if (again) setText(this.note, edited ? EDITED : AGAIN);
      if (again && edited) this.allow?.focus(); // where the user was when they pressed Run
      if (approval) this.written = undefined;
      this.before = approval ?? this.before;
    }
    const finish = this.element.querySelector<HTMLElement>(".finish");
    const inPart = decidedInPart(proposal);
    if (finish) finish.hidden = !inPart;
    if (approval?.proposalId) this.label(proposal);
  }

  /** What the answers to the question about changes are about. */
  private label(proposal: Proposal | undefined): void {
    const what = decidedInPart(proposal) ? " the rest" : meant(proposal);
    if (this.allow) setText(this.allow, `Accept${what}${this.added}`);
    const reject = this.element.querySelector("button.reject");
    if (reject) setText(reject, `Reject${what}`);
  }

  /** What the daemon says of a rule that is edited here. */
  checked(message: Extract<ToView, { type: "rule" }>): void {
    if (message.toolCallId === this.asked?.toolCallId) this.rule?.checked(message.rule, message);
  }

  private draw(approval: Approval): HTMLElement[] {
    this.element.setAttribute("aria-label", `Your decision: ${visible(wanted(approval))}`);
    this.element.dataset.call = approval.toolCallId;
    this.element.classList.remove("changing");
    this.note = h("div", { class: "note", role: "status" });
    if (approval.document !== null)
      return [
        ...planForm(
          approval,
          (message) => this.view.post(message),
          (chosen) => this.answerPlan(this.asked ?? approval, chosen),
        ),
        this.note,
      ];
    const edits = approval.proposalId !== null;
    const scope = h("select", { class: "scope", "aria-label": "For how long" });
    for (const offer of approval.scopes)
      scope.append(h("option", { value: offer.scope }, SCOPES[offer.scope]));
    const chosen = () => yes(approval, approval.scopes[scope.selectedIndex]?.scope ?? "once", grants.chosen);
    scope.addEventListener("change", () => {
      rule.offer(chosen());
      setText(this.note, "");
      look();
    });
    // a yes says all that it means, wherever that was chosen
    const look = () => {
      const answer = chosen();
      this.added = answer === undefined ? "" : beyondYes(answer);
      allow.disabled = rule.blocked || answer === undefined;
      allow.title = answer === undefined ? NOT_KEPT : "";
      if (edits) this.label(proposalOf(this.view, approval.proposalId));
      else setText(allow, `Allow${this.added}`);
      command?.label(`Run${this.added}`);
    };
    const grants = new Grants(approval, () => {
      if (rule.edited === null) rule.offer(chosen());
      look();
    });
    const rule = new RuleField(this.view, approval, () => look());
    const reason = h("input", {
      class: "reason",
      placeholder: "Reason (optional)",
      "aria-label": "Reason",
    });
    const answer = (decision: "allow" | "reject" | "finish", own?: string) => {
      const yes = decision === "allow";
      const why = reason.value.trim() || null;
      const proposal = proposalOf(this.view, approval.proposalId);
      if (decision === "reject" && proposal && (decidedInPart(proposal) || proposal.toolCallIds.length > 1)) {
        this.rejectRest(proposal, why); // what is applied already was not rejected
        return;
      }
      const { toolCallId, digest } = this.asked ?? approval;
      this.view.post({
        type: "resolve",
        toolCallId,
        decision,
        scope: yes ? (chosen()?.scope ?? "once") : "once",
        rule: yes && own === undefined ? rule.edited : null,
        reason: why,
        digest,
        grants: yes ? grants.chosen : [],
        ...(own === undefined ? {} : { command: own }),
      });
    };
    const edit = button("Edit", () => command?.open(), { class: "edit", title: BUTTONS.editCommand });
    const command =
      approval.command === null
        ? undefined
        : new CommandField(
            approval.command,
            (own) => {
              this.written = own;
              answer("allow", own);
            },
            (open) => {
              this.element.classList.toggle("changing", open);
              if (!open) edit.focus();
            },
          );
    reason.addEventListener("keydown", (event) => {
      if (event.key === "Enter") answer("reject");
    });
    const allow = button(edits ? "Accept" : "Allow", () => answer("allow"), { class: "primary allow" });
    this.rule = rule;
    this.allow = allow;
    look();
    const reject = button(BUTTONS.reject, () => answer("reject"), { class: "reject" });
    const finish = button(BUTTONS.later, () => answer("finish"), {
      class: "finish",
      title: "Continue; undecided changes stay open",
      hidden: true,
    });
    const choices = h("div", { class: "row" }, approval.scopes.length > 1 && scope, reason);
    if (edits) {
      const lines = reasons(approval);
      const { proposalId } = approval;
      return [
        approval.agent !== "" && h("div", { class: "why" }, question(approval)),
        toned(lines.filter(({ tone }) => tone !== "plain")),
        h(
          "div",
          { class: "row" },
          allow,
          button("Review", () => this.review(proposalId), {
            class: "link review",
            title: "Show the changes in the editor",
          }),
          reject,
          finish,
        ),
        more(
          toned(lines.filter(({ tone }) => tone === "plain")),
          choices,
          grants.element,
          rule.element,
          button("Apply now, review later", () => this.reviewLater(proposalId), {
            class: "link later",
            title: "Writes the changes to the file; keep or undo them when you have looked",
          }),
        ),
        this.note,
      ].filter((each) => each !== false);
    }
    return [
      h("div", { class: "why" }, question(approval)),
      command?.element,
      new Detail(approval.detail).element,
      partsList(approval.parts, approval.detail),
      toned(reasons(approval)),
      grants.element,
      h("div", { class: "row" }, allow, command && edit, reject),
      more(choices, rule.element),
      this.note,
    ].filter((each) => each !== undefined);
  }

  private review(proposalId: string | null): void {
    const proposal = proposalOf(this.view, proposalId);
    const [first] = proposal ? withHunks(changesOf(proposal), (hunk) => hunk.waits !== "") : [];
    if (proposal === undefined || first === undefined) return;
    const { file, row } = first;
    const rowId = row && { rowId: row.rowId };
    this.view.post({ type: "openDiff", proposalId: proposal.proposalId, path: file.path, ...rowId });
  }

  private reviewLater(proposalId: string | null): void {
    const proposal = proposalOf(this.view, proposalId);
    if (proposal === undefined) return;
    const { version } = proposal;
    this.view.post({ type: "setReview", proposalId: proposal.proposalId, version, review: "after" });
  }

  private answerPlan(
    { toolCallId, digest }: Approval,
    chosen: ApprovalAnswer | { reason: string | null },
  ): void {
    const yes = "mode" in chosen;
    this.view.post({
      type: "resolve",
      toolCallId,
      digest,
      decision: yes ? "allow" : "reject",
      scope: "once",
      rule: null,
      reason: yes ? null : chosen.reason,
      grants: [],
      ...(yes ? { mode: chosen.mode, freshContext: chosen.freshContext } : {}),
    });
  }

  private rejectRest(proposal: Proposal, reason: string | null): void {
    const open = withHunks(changesOf(proposal).filter(isDecidable), ({ state }) => state === "pending");
    if (open.length > 0) this.view.post(hunksMessage(proposal, open, { decision: "reject", reason }));
  }
}

/** What is rarely wanted. */
function more(...children: HTMLElement[]): HTMLElement {
  return h("details", { class: "more" }, h("summary", {}, "More options"), ...children);
}

/** What is accepted or rejected, behind the verb: "" where there is only one change. */
function meant(proposal: Proposal | undefined): string {
  const changes = proposal === undefined ? [] : changesOf(proposal);
  if (new Set(changes.map(({ file }) => file.path)).size > 1) return ` ${extent(changes)}`;
  return changes.flatMap(({ file }) => file.hunks).length > 1 ? " file" : "";
}

/** The words after a yes: for how long, if not once, and with what. */
function beyondYes({ label }: ApprovalAnswer): string {
  return visible(label).replace(/^(?:Allow|Accept all)(?: once)?/, "");
}

function question({ agent, proposalId }: Approval): string {
  if (proposalId !== null)
    return agent ? `Apply this change by the agent ${visible(agent)}?` : "Apply this change?";
  return agent ? `Allow the agent ${visible(agent)} to do this?` : "Allow this?";
}

/** What is asked: another key is another question. A proposal's changes are drawn beside it, and are
 * mostly the user's own; those of a plan are shown in its document. */
function key(approval: Approval | undefined): string {
  if (approval === undefined) return "";
  const { toolCallId, askedAt, digest, proposalId, document } = approval;
  return `${toolCallId} ${askedAt} ${proposalId === null && document === null ? digest : ""}`;
}

function decidedInPart(proposal: Proposal | undefined): boolean {
  const states = proposal === undefined ? [] : hunksOf(proposal).map(({ state }) => state);
  return states.includes("pending") && states.some((state) => state !== "pending");
}
