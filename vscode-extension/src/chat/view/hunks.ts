import { name, seen, title } from "../../changes";
import { OPEN, waits } from "../../hunks";
import type { Approval, Hunk, HunkState, Proposal, ProposedFile } from "../../protocol";
import type { Desk } from "./desk";
import { button, h } from "./dom";

/** Lines of one hunk shown in the chat; the diff editor shows the rest. */
const LINES = 30;

const STATES: Record<HunkState, string> = {
  pending: "",
  accepted: "accepted",
  applied: "applied",
  rejected: "rejected",
  conflicted: "conflict",
  undoing: "being undone",
  revertedByPerson: "taken back by you",
};

/** The changes a call proposes, with a decision for each. */
export class HunksBox {
  readonly element = h("div", { class: "hunks", hidden: true });
  private shown = "";

  constructor(private readonly desk: Desk) {}

  update(proposal: Proposal | undefined, approval: Approval | undefined): void {
    this.element.hidden = proposal === undefined;
    const key = proposal ? `${proposal.proposalId} ${proposal.version} ${approval !== undefined}` : "";
    if (key === this.shown) return;
    this.shown = key;
    this.element.replaceChildren(
      ...(proposal ? proposal.files.map((file) => this.file(proposal, file, approval !== undefined)) : []),
      ...(proposal ? this.whole(proposal) : []),
    );
  }

  /** What can be said to the proposal as a whole beside its approval: keep, undo, or review it at another time. */
  private whole(proposal: Proposal): HTMLElement[] {
    const { proposalId, version, files } = proposal;
    const found = files.flatMap((file) => file.hunks).map(waits);
    const [open, review] = [found.includes("decision"), found.includes("review")];
    const several = found.filter((each) => each === "review").length > 1;
    const at = (review: "before" | "after") => () =>
      this.desk.post({ type: "setReview", proposalId, version, review });
    const keep = () =>
      this.desk.post({ type: "decide", scope: { proposalId }, decision: "keep", seen: seen([proposal]) });
    if (!open && !review) return [];
    return [
      h(
        "div",
        { class: "row whole" },
        several && button("Keep all", keep, { class: "accept" }),
        several && button("Undo all", () => this.desk.post({ type: "undo", scope: { proposalId } })),
        open &&
          button("Apply now, review after", at("after"), {
            class: "link",
            title: "Writes what is open; keep or undo it when you have looked",
          }),
        review &&
          button("Take back, review before", at("before"), {
            class: "link",
            title: "Takes back what you have not kept, to be accepted or rejected",
          }),
      ),
    ];
  }

  private file(proposal: Proposal, file: ProposedFile, asked: boolean): HTMLElement {
    const open = file.hunks.some((hunk) => waits(hunk) !== undefined);
    return h(
      "details",
      { class: "file", open: asked || open },
      h(
        "summary",
        {},
        h("span", { class: "path", title: file.path }, title(file)),
        h("span", { class: "stat" }, `+${file.added} −${file.removed}`),
        h("span", { class: "aside" }, decided(file)),
        button(
          "Show diff",
          () => this.desk.post({ type: "openDiff", proposalId: proposal.proposalId, path: file.path }),
          { class: "link", "aria-label": `Show the diff of ${name(file.path)}` },
        ),
      ),
      ...file.hunks.map((hunk) => this.hunk(proposal, hunk)),
    );
  }

  private hunk(proposal: Proposal, hunk: Hunk): HTMLElement {
    const decide = (decision: "accept" | "reject") => () =>
      this.desk.post({
        type: "hunks",
        proposalId: proposal.proposalId,
        version: proposal.version,
        hunks: [{ hunkId: hunk.hunkId, decision }],
      });
    const { proposalId } = proposal;
    const scope = { proposalId, hunkIds: [hunk.hunkId] };
    const later = (decision: "keep" | "redo") => () =>
      this.desk.post({ type: "decide", scope, decision, seen: seen([proposal]) });
    const undo = () => this.desk.post({ type: "undo", scope });
    const where = `line ${hunk.oldLines > 0 ? hunk.oldStart : hunk.newStart}`;
    const open = OPEN.has(hunk.state);
    const review = waits(hunk) === "review";
    const state = STATES[hunk.state] + (hunk.editedByPerson ? ", with your changes" : "");
    return h(
      "div",
      { class: `hunk ${hunk.state}`, role: "group", "aria-label": `Change at ${where}` },
      hunk.explanation !== "" && h("div", { class: "explanation" }, hunk.explanation),
      lines(hunk),
      h(
        "div",
        { class: "row" },
        h("span", { class: "where" }, where),
        open &&
          button(hunk.state === "conflicted" ? "Try again" : "Accept", decide("accept"), { class: "accept" }),
        open && button("Reject", decide("reject"), { class: "reject" }),
        review && button("Keep", later("keep"), { class: "accept" }),
        review && button("Undo", undo, { class: "reject" }),
        hunk.state === "revertedByPerson" && button("Redo", later("redo"), { class: "link" }),
        state !== "" && h("span", { class: "aside" }, hunk.reason ? `${state}: ${hunk.reason}` : state),
      ),
    );
  }
}

/** How the decisions on a file's hunks went; "" while there are none. */
export function decided(file: ProposedFile): string {
  const count = (state: HunkState) => file.hunks.filter((hunk) => hunk.state === state).length;
  const words = (["applied", "rejected", "conflicted", "revertedByPerson"] as const)
    .filter((state) => count(state) > 0)
    .map((state) => `${count(state)} ${STATES[state]}`);
  return [...words, ...(file.unsaved ? ["not saved yet"] : [])].join(", ");
}

function lines(hunk: Hunk): HTMLElement {
  const block = h("pre", { tabindex: "0", "aria-label": "The change" });
  const all = [
    ...split(hunk.oldText).map((line) => ["removed", "−", line] as const),
    ...split(hunk.newText).map((line) => ["added", "+", line] as const),
  ];
  for (const [kind, sign, line] of all.slice(0, LINES))
    block.append(h("span", { class: kind }, `${sign} ${line}\n`));
  if (all.length > LINES)
    block.append(h("span", { class: "more" }, `  … ${all.length - LINES} more lines in the diff`));
  return block;
}

function split(text: string): string[] {
  if (text === "") return [];
  const found = text.split(/\r\n|\r|\n/);
  if (found.at(-1) === "") found.pop();
  return found;
}
