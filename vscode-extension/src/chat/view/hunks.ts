import { diffArrays } from "diff";
import { name, plural, seen, title } from "../../changes";
import { altered, OPEN, waits } from "../../hunks";
import type { Approval, Hunk, HunkState, Proposal, ProposedFile } from "../../protocol";
import { verdict } from "../../verdict";
import type { Desk } from "./desk";
import { button, h } from "./dom";

/** Lines of one hunk shown in the chat; the diff editor shows the rest. */
const LINES = 30;
/** Changed lines up to which a hunk is shown line by line, and unchanged ones shown on each side of a change. */
const EDITS = 400;
const AROUND = 2;
/** Hunks of a proposal drawn at once; of more the first is drawn, and all of them when the user wants to see them. */
const FEW = 4;
/** Findings of a checker shown in the chat; the hover of a change has those of its lines. */
const FINDINGS = 5;

const STATES: Record<HunkState, string> = {
  pending: "",
  accepted: "accepted",
  applied: "applied",
  rejected: "rejected",
  conflicted: "conflict",
  undoing: "being undone",
  reverted: "undone by you",
};

/** The changes a call proposes, with a decision for each. */
export class HunksBox {
  readonly element = h("div", { class: "hunks", hidden: true });
  private shown = "";
  private unfolded = false;
  /** What checkers say, by file: it comes while the question stands, and must not draw anew what the user is at. */
  private readonly checks = new Map<string, HTMLElement>();

  constructor(private readonly desk: Desk) {}

  update(proposal: Proposal | undefined, approval: Approval | undefined): void {
    this.element.hidden = proposal === undefined;
    const key = proposal
      ? `${proposal.proposalId} ${proposal.version} ${approval !== undefined} ${this.unfolded}`
      : "";
    if (key === this.shown) return this.look(proposal);
    this.shown = key;
    const at = this.element.contains(document.activeElement)
      ? document.activeElement?.closest<HTMLElement>("[data-hunk]")?.dataset.hunk
      : undefined;
    this.checks.clear();
    this.element.replaceChildren(
      ...(proposal ? this.files(proposal, approval) : []),
      ...(proposal ? this.whole(proposal, approval !== undefined) : []),
    );
    this.look(proposal);
    // who decides by keyboard goes on from there
    if (at !== undefined) this.element.querySelector<HTMLElement>(`[data-hunk="${at}"]`)?.focus();
  }

  private look(proposal: Proposal | undefined): void {
    for (const file of proposal?.files ?? []) {
      const box = this.checks.get(file.path);
      const said = checked(file).join("\n");
      if (box === undefined || box.textContent === said) continue;
      box.textContent = said;
      box.hidden = said === "";
      box.classList.toggle("worse", worse(file));
    }
  }

  /** Below the changes: to review them at another time, where the question about them does not offer it. */
  private whole(proposal: Proposal, asked: boolean): HTMLElement[] {
    const { proposalId, version, files } = proposal;
    const found = files.flatMap((file) => file.hunks).map(waits);
    const open = found.includes("decision") && !asked;
    const review = found.includes("review");
    const at = (review: "before" | "after") => () =>
      this.desk.post({ type: "setReview", proposalId, version, review });
    if (!open && !review) return [];
    return [
      h(
        "div",
        { class: "row whole" },
        open &&
          button("Apply now, review later", at("after"), {
            class: "link",
            title: "Writes the changes to the file; keep or undo them when you have looked",
          }),
        review &&
          button("Undo and review first", at("before"), {
            class: "link",
            title: "Undoes what you have not kept, so that you can accept or reject it",
          }),
      ),
    ];
  }

  private files(proposal: Proposal, approval: Approval | undefined): HTMLElement[] {
    const { files } = proposal;
    const hunks = files.flatMap((file) => file.hunks);
    const asked = approval !== undefined;
    if (this.unfolded || hunks.length <= FEW)
      return files.map((file) => this.file(proposal, file, file.hunks, asked));
    const first = hunks.find((hunk) => waits(hunk) !== undefined) ?? hunks[0];
    const shown = files.find((file) => file.hunks.some((hunk) => hunk === first));
    return files.map((file) => {
      const own = file === shown && first !== undefined ? [first] : [];
      const element = this.file(proposal, file, own, asked && own.length > 0);
      if (own.length > 0) element.append(this.fold(proposal, hunks.length, approval));
      else element.addEventListener("toggle", () => this.fill(element, proposal, file), { once: true });
      return element;
    });
  }

  /** What stands in the place of the hunks that are not drawn. */
  private fold(proposal: Proposal, count: number, approval: Approval | undefined): HTMLElement {
    const all = () => {
      this.unfolded = true;
      this.update(proposal, approval);
      this.element.querySelector<HTMLElement>("[data-hunk]")?.focus();
    };
    return h("div", { class: "row fold" }, button(`Show all ${count} changes`, all, { class: "link" }));
  }

  /** The hunks of a file that was folded, when the user opens it. */
  private fill(element: HTMLElement, proposal: Proposal, file: ProposedFile): void {
    element.append(
      ...file.hunks.map((hunk) => this.hunk(proposal, hunk, hunk.explanation !== common(file), false)),
    );
  }

  private file(proposal: Proposal, file: ProposedFile, shown: Hunk[], asked: boolean): HTMLElement {
    const open = shown.some((hunk) => waits(hunk) !== undefined);
    const checks = h("div", { class: "checks", role: "status", hidden: true });
    this.checks.set(file.path, checks);
    const said = common(file);
    const only = asked && proposal.files.length === 1 && file.hunks.length === 1;
    return h(
      "details",
      { class: "file", open: asked || open },
      h(
        "summary",
        {},
        h("span", { class: "path", title: file.path }, title(file)),
        h("span", { class: "stat" }, stat([file])),
        h("span", { class: "aside" }, decided(file)),
        !(asked && proposal.files.length === 1) && // its question has *Review*
          button(
            "Show diff",
            () => this.desk.post({ type: "openDiff", proposalId: proposal.proposalId, path: file.path }),
            { class: "link", "aria-label": `Show the diff of ${name(file.path)}` },
          ),
      ),
      said !== "" && h("div", { class: "explanation" }, said),
      checks,
      ...shown.map((hunk) => this.hunk(proposal, hunk, hunk.explanation !== said, only)),
    );
  }

  /** `only`: the question about the whole is the one about it. */
  private hunk(proposal: Proposal, hunk: Hunk, explained: boolean, only: boolean): HTMLElement {
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
    const mere = !differs(hunk) && hunk.state !== "conflicted"; // a rename alone: no line is meant
    const where = mere ? "" : `line ${hunk.oldLines > 0 ? hunk.oldStart : hunk.newStart}`;
    const open = OPEN.has(hunk.state) && !(only && hunk.state === "pending");
    const review = waits(hunk) === "review";
    const state = STATES[hunk.state] + altered(hunk);
    return h(
      "div",
      {
        class: `hunk ${hunk.state}`,
        role: "group",
        tabindex: "-1",
        "data-hunk": hunk.hunkId,
        "aria-label": mere ? "The rename" : `Change at ${where}`,
      },
      explained && hunk.explanation !== "" && h("div", { class: "explanation" }, hunk.explanation),
      lines(hunk),
      h(
        "div",
        { class: "row" },
        !mere && h("span", { class: "where" }, where),
        open &&
          button(hunk.state === "conflicted" ? "Try again" : "Accept", decide("accept"), { class: "accept" }),
        open && button("Reject", decide("reject"), { class: "reject" }),
        review && button("Keep", later("keep"), { class: "accept" }),
        review && button("Undo", undo, { class: "reject" }),
        hunk.state === "reverted" && button("Redo", later("redo"), { class: "link" }),
        state !== "" && h("span", { class: "aside" }, hunk.reason ? `${state}: ${hunk.reason}` : state),
      ),
    );
  }
}

/** What the hunks of a file are for, said once where it is said of all; else "". */
function common({ hunks }: ProposedFile): string {
  const [first, ...others] = [...new Set(hunks.map((hunk) => hunk.explanation))];
  return others.length === 0 ? (first ?? "") : "";
}

/** How the decisions on a file's hunks went; "" while there are none. */
export function decided(file: ProposedFile): string {
  const count = (state: HunkState) => file.hunks.filter((hunk) => hunk.state === state).length;
  const words = (["applied", "rejected", "conflicted", "reverted"] as const)
    .filter((state) => count(state) > 0)
    .map((state) => `${count(state)} ${STATES[state]}`);
  return [...words, ...(file.unsaved ? ["not saved yet"] : [])].join(", ");
}

/** Lines added and removed; a mere rename changes none. */
export function stat(files: ProposedFile[]): string {
  const other = files.filter(({ change, hunks }) => change !== "rename" || hunks.some(differs));
  const sum = (key: "added" | "removed") => other.reduce((total, file) => total + file[key], 0);
  return other.length === 0 ? "" : `+${sum("added")} −${sum("removed")}`;
}

function differs({ oldText, newText }: Hunk): boolean {
  return oldText !== newText;
}

/** What checkers say of a file: in one line, then what they found. Of a proposed text as long as it is open. */
function checked({ hunks, checks }: ProposedFile): string[] {
  const open = hunks.some((hunk) => OPEN.has(hunk.state));
  const told = checks
    .filter(({ about }) => about === "applied" || open)
    .map((check) => verdict(check, 1, Infinity));
  const found = told.flatMap(([, ...rest]) => rest);
  const rest = found.length - FINDINGS;
  return [
    ...(told.length > 0 ? [told.map(([head]) => head).join(" · ")] : []),
    ...found.slice(0, FINDINGS),
    ...(rest > 0 ? [`  and ${rest} more`] : []),
  ];
}

function worse({ checks }: ProposedFile): boolean {
  return checks.some(({ added }) => added.some(({ severity }) => severity === "error"));
}

function lines(hunk: Hunk): HTMLElement {
  const block = h("pre", { tabindex: "0", "aria-label": "The change" });
  const all = rows(hunk);
  for (const [kind, sign, line] of all.slice(0, LINES))
    block.append(h("span", { class: kind }, `${sign} ${line}\n`));
  if (all.length === 0) block.append(h("span", { class: "more" }, "  The text stays as it is."));
  if (all.length > LINES)
    block.append(h("span", { class: "more" }, `  … ${plural(all.length - LINES, "more line")} in the diff`));
  return block;
}

type Line = [kind: string, sign: string, line: string];

/** A hunk line by line; where it is much, all that goes before all that comes. */
function rows({ oldText, newText }: Hunk): Line[] {
  const [old, now] = [split(oldText), split(newText)];
  const line =
    (kind: string, sign: string) =>
    (text: string): Line => [kind, sign, text];
  const found = diffArrays(old, now, { maxEditLength: EDITS });
  if (found === undefined) return [...old.map(line("removed", "−")), ...now.map(line("added", "+"))];
  if (found.every((part) => !part.added && !part.removed)) return [];
  return found.flatMap((part, at) => {
    if (part.removed) return part.value.map(line("removed", "−"));
    if (part.added) return part.value.map(line("added", "+"));
    const [before, after] = [at > 0 ? AROUND : 0, at < found.length - 1 ? AROUND : 0];
    const same = part.value.map(line("same", " "));
    const skipped = same.length - before - after;
    if (skipped <= 1) return same;
    return [...same.slice(0, before), line("more", " ")("⋯"), ...same.slice(same.length - after)];
  });
}

function split(text: string): string[] {
  if (text === "") return [];
  const found = text.split(/\r\n|\r|\n/);
  if (found.at(-1) === "") found.pop();
  return found;
}
