import { diffArrays } from "diff";
import {
  called,
  type Change,
  changesOf,
  isDecidable,
  name,
  needing,
  plural,
  scopeOf,
  seen,
  title,
  withHunks,
} from "../../review/changes";
import { altered } from "../../review/hunks";
import type {
  Approval,
  Hunk,
  HunkDecision,
  HunkState,
  Proposal,
  ProposedFile,
  Row,
  RowVersion,
} from "../../protocol";
import { openable, rowIcon, rowTitle } from "../../review/rows";
import { verdict } from "../../review/verdict";
import { visible } from "../../editor/visible";
import type { ToHost } from "../messages";
import type { ChatView } from "./chatView";
import { button, h } from "./dom";
import { icon } from "./icon";
import { toned } from "./toned";

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

/** The changes a call proposes, hunks and rows, with a decision for each. */
export class HunksBox {
  readonly element = h("div", { class: "hunks", hidden: true });
  private shown = "";
  private unfolded = false;
  /** What checkers say, by file: it comes while the question stands, and must not draw anew what the user is at. */
  private readonly checks = new Map<string, HTMLElement>();

  constructor(private readonly view: ChatView) {}

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
      ...(proposal ? this.changes(proposal, approval) : []),
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
    const { proposalId, version } = proposal;
    const decidable = changesOf(proposal).filter(isDecidable);
    const found = decidable.flatMap(({ file }) => file.hunks).map(({ waits }) => waits);
    const open = found.includes("decision") && !asked;
    const review = found.includes("review");
    const at = (review: "before" | "after") => () =>
      this.view.post({ type: "setReview", proposalId, version, review });
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

  private changes(proposal: Proposal, approval: Approval | undefined): HTMLElement[] {
    const changes = changesOf(proposal);
    const hunks = changes.flatMap(({ file }) => file.hunks);
    const asked = approval !== undefined;
    const alone = changes.length === 1;
    if (this.unfolded || hunks.length <= FEW)
      return changes.map((change) => this.change(proposal, change, change.file.hunks, asked, alone));
    const first = hunks.find((hunk) => hunk.waits !== "") ?? hunks[0];
    const shown = changes.find(({ file }) => file.hunks.some((hunk) => hunk === first));
    return changes.map((change) => {
      const own = change === shown && first !== undefined ? [first] : [];
      const element = this.change(proposal, change, own, asked && own.length > 0, alone);
      if (own.length > 0) element.append(this.fold(proposal, hunks.length, approval));
      else element.addEventListener("toggle", () => this.fill(element, proposal, change), { once: true });
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

  /** Draw the hunks of a folded file, or the contents of a row, when the user opens it. */
  private fill(element: HTMLElement, proposal: Proposal, change: Change): void {
    element.append(...change.file.hunks.map((hunk) => this.hunk(proposal, change, hunk, false)));
  }

  /** `asked`: there is a question about the whole. `alone`: there is no other change. */
  private change(
    proposal: Proposal,
    change: Change,
    shown: Hunk[],
    asked: boolean,
    alone: boolean,
  ): HTMLElement {
    const { file, row } = change;
    const open = shown.some((hunk) => hunk.waits !== "");
    const checks = h("div", { class: "checks", role: "status", hidden: true });
    if (row === undefined) this.checks.set(file.path, checks);
    const said = common(file);
    const only = asked && alone && file.hunks.length === 1;
    return h(
      "details",
      { class: "file", open: asked || open },
      row === undefined ? this.fileLine(proposal, file, !(asked && alone)) : this.rowLine(row),
      said !== "" && h("div", { class: "explanation" }, said),
      checks,
      ...shown.map((hunk) => this.hunk(proposal, change, hunk, only)),
    );
  }

  /** `offers`: there is a button for the diff; otherwise the question has *Review*. */
  private fileLine({ proposalId }: Proposal, file: ProposedFile, offers: boolean): HTMLElement {
    const { path } = file;
    return h(
      "summary",
      {},
      h("span", { class: "path", title: path }, title({ file })),
      h("span", { class: "stat" }, stat([file])),
      h("span", { class: "aside" }, decided(file)),
      offers &&
        button("Show diff", () => this.view.post({ type: "openDiff", proposalId, path }), {
          class: "link",
          "aria-label": `Show diff of ${name(path)}`,
        }),
    );
  }

  private rowLine(row: Row): HTMLElement {
    const path = openable(row);
    const paths = [row.path, row.newPath].filter((each) => each != null);
    return h(
      "summary",
      {},
      icon(rowIcon(row)),
      h("span", { class: "path", title: visible(paths.join(" → ")) }, called(row.path, row)),
      h("span", { class: "aside" }, rowTitle(row)),
      row.state !== "pending" && h("span", { class: "aside" }, STATES[row.state]),
      path !== undefined &&
        button("Open", () => this.view.post({ type: "openFile", path, line: null }), {
          class: "link",
          "aria-label": `Open ${name(path)}`,
        }),
    );
  }

  /** `only`: the question about the whole is the one about it. */
  private hunk(proposal: Proposal, change: Change, hunk: Hunk, only: boolean): HTMLElement {
    const { file, row } = change;
    const mere = row === undefined && !differs(hunk) && hunk.state !== "conflicted"; // a rename alone: no line is meant
    const where = mere || row ? "" : `line ${hunk.lines.start + 1}`;
    const explained = hunk.explanation !== "" && hunk.explanation !== common(file);
    return h(
      "div",
      {
        class: `hunk ${hunk.state}`,
        role: "group",
        tabindex: "-1",
        "data-hunk": hunk.hunkId,
        "aria-label": row ? title(change) : mere ? "The rename" : `Change at ${where}`,
      },
      explained && h("div", { class: "explanation" }, hunk.explanation),
      ...(row === undefined ? [lines(hunk)] : this.told(row)),
      this.answers(proposal, change, hunk, where, only),
    );
  }

  /** The contents of a row below its line. */
  private told(row: Row): HTMLElement[] {
    const pictures = [this.picture("Before", row, row.before), this.picture("After", row, row.after)];
    const shown = pictures.filter((each) => each !== undefined);
    return [
      ...(row.lines.length > 0 ? [toned(row.lines)] : []),
      ...(shown.length > 0 ? [h("div", { class: "pictures" }, ...shown)] : []),
    ];
  }

  /** A figure: the words at once, the picture when the extension has fetched it. */
  private picture(words: string, { path }: Row, version: RowVersion | null): HTMLElement | undefined {
    const { picture, mediaType = "" } = version ?? {};
    if (!picture) return undefined;
    const { blobId } = picture;
    this.view.post({ type: "picture", blobId, mediaType });
    return h(
      "figure",
      {},
      h("img", { "data-blob": blobId, alt: `${name(path)}, ${words.toLowerCase()}` }),
      h("figcaption", {}, words),
    );
  }

  private answers(proposal: Proposal, change: Change, hunk: Hunk, where: string, only: boolean): HTMLElement {
    const { row } = change;
    const chosen = withHunks([change], ({ hunkId }) => hunkId === hunk.hunkId);
    const decide = (decision: "accept" | "reject") => () =>
      this.view.post(hunksMessage(proposal, chosen, { decision }));
    const scope = scopeOf(proposal.proposalId, chosen);
    const later = (decision: "keep" | "redo") => () =>
      this.view.post({ type: "decide", scope, decision, seen: seen([proposal]) });
    const undo = () => this.view.post({ type: "undo", scope });
    const retry = () => this.view.post({ type: "retryChange", version: proposal.version, scope });
    const open = hunk.waits === "decision" && !(only && hunk.state === "pending");
    const review = hunk.waits === "review";
    const state = STATES[hunk.state] + altered(hunk);
    if (row !== undefined && !isDecidable(change))
      return h("div", { class: "row" }, h("span", { class: "aside" }, visible(row.undecidable)));
    return h(
      "div",
      { class: "row" },
      where !== "" && h("span", { class: "where" }, where),
      open &&
        button(hunk.state === "conflicted" ? "Try again" : "Accept", decide("accept"), { class: "accept" }),
      open && hunk.state === "conflicted" && button("Ask Amanu to redo this change", retry),
      open && button("Reject", decide("reject"), { class: "reject" }),
      review && button("Keep", later("keep"), { class: "accept" }),
      review && button("Undo", undo, { class: "reject" }),
      hunk.state === "reverted" && button("Redo", later("redo"), { class: "link" }),
      needing(row) !== "" && h("span", { class: "aside" }, needing(row).trim()),
      state !== "" &&
        h("span", { class: "aside" }, hunk.reason ? `${state}: ${visible(hunk.reason)}` : state),
    );
  }
}

/** The message that carries this decision on those changes. */
export function hunksMessage(
  { proposalId, version }: Proposal,
  changes: Change[],
  said: Pick<HunkDecision, "decision" | "reason">,
): ToHost {
  const hunks = changes.flatMap(({ file, row }) => (row === undefined ? file.hunks : []));
  const rows = changes.flatMap(({ row }) => row ?? []);
  return {
    type: "hunks",
    proposalId,
    version,
    hunks: hunks.map(({ hunkId }) => ({ hunkId, ...said })),
    rows: rows.map(({ rowId }) => ({ rowId, ...said })),
  };
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
  const open = hunks.some((hunk) => hunk.waits === "decision");
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
