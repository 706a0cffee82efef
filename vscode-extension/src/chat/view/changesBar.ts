import {
  called,
  entries,
  type Entry,
  extent,
  hunksOf,
  isDecidable,
  needing,
  plural,
} from "../../review/changes";
import type { Proposal } from "../../protocol";
import { rowIcon, rowTitle } from "../../review/rows";
import { visible } from "../../editor/visible";
import { capital } from "../../sessions/words";
import type { SeenFile } from "../messages";
import type { ChatView } from "./chatView";
import { button, h } from "./dom";
import { icon, iconButton } from "./icon";

/** What is to be decided: what is proposed, what a rule applied, or both. */
type Only = "decision" | "review" | null;

/** The bar over the prompt box: how much waits for the user's review and, when unfolded, the files and rows. */
export class ChangesBar {
  readonly element = h("section", { class: "changes", "aria-label": "Changes to review", hidden: true });
  /** The proposals with something that waits: an event must not cost a look at all that ever was. */
  private waiting = new Map<string, Proposal>();
  private stale = true;
  private unfolded = false;

  constructor(private readonly view: ChatView) {}

  /** Another session is shown. */
  reset(): void {
    this.waiting = new Map();
    for (const proposal of this.view.session.state.proposals) this.note(proposal);
    this.stale = true;
  }

  note(proposal: Proposal): void {
    if (hunksOf(proposal).some((hunk) => hunk.waits !== "")) this.waiting.set(proposal.proposalId, proposal);
    else if (!this.waiting.delete(proposal.proposalId)) return;
    this.stale = true;
  }

  update(): void {
    if (!this.stale) return;
    this.stale = false;
    const { sessionId } = this.view.session.state;
    const found = entries([{ sessionId, proposals: [...this.waiting.values()] }]);
    this.element.hidden = found.length === 0;
    const at = this.element.contains(document.activeElement)
      ? (document.activeElement as HTMLElement).dataset.key
      : undefined;
    this.element.replaceChildren(...(found.length === 0 ? [] : [this.head(found), this.list(found)]));
    // who decides by keyboard goes on from there
    if (at === undefined) return;
    const same = this.element.querySelector<HTMLElement>(`[data-key="${CSS.escape(at)}"]`);
    (same ?? this.element.querySelector<HTMLElement>("[data-key=unfold]"))?.focus();
  }

  private head(found: Entry[]): HTMLElement {
    const decidable = found.filter(isSettleable);
    const sum = (key: "added" | "removed") => found.reduce((total, entry) => total + entry[key], 0);
    const some = (key: "open" | "review") => decidable.some((entry) => entry[key] > 0);
    const [open, review] = [some("open"), some("review")];
    const where = capital(extent(found.flatMap(({ targets }) => targets)));
    const unfold = button(where, () => this.unfold(), {
      class: "link unfold",
      "aria-expanded": String(this.unfolded),
      "aria-controls": "changed-files",
      "data-key": "unfold",
    });
    const yes = open ? "Accept all" : "Keep all";
    return h(
      "div",
      { class: "row" },
      unfold,
      found.some(({ row }) => row === undefined) && counts(sum("added"), sum("removed")),
      button("Review", () => this.view.post({ type: "turn", what: "review", turnId: "" }), {
        class: "link review",
        title: "Show the changes in the editor",
        "data-key": "review",
      }),
      decidable.length > 0 &&
        button(yes, () => this.settle(found, true, null), {
          class: "primary",
          "data-key": "yes",
          title: open && review ? "Accepts what is proposed and keeps what is applied" : "",
        }),
    );
  }

  private list(found: Entry[]): HTMLElement {
    const some = (key: "open" | "review") => found.some((entry) => isSettleable(entry) && entry[key] > 0);
    const refuse = (words: string, only: "decision" | "review") =>
      button(words, () => this.settle(found, false, only), { class: "link", "data-key": words });
    return h(
      "ul",
      { id: "changed-files", hidden: !this.unfolded },
      ...found.map((entry) => this.line(entry)),
      h(
        "li",
        { class: "row" },
        h("span", { class: "space" }),
        some("open") && refuse("Reject all", "decision"),
        some("review") && refuse("Undo all", "review"),
      ),
    );
  }

  private line(entry: Entry): HTMLElement {
    const { path, row, conflicts } = entry;
    const [yes, no] = entry.open > 0 ? ["Accept", "Reject"] : ["Keep", "Undo"];
    const file = called(path, row);
    // two entries may be at one path
    const what = row === undefined ? file : `${file}, ${rowTitle(row)}`;
    const key = `${row?.kind ?? ""} ${path}`;
    return h(
      "li",
      { class: "row" },
      row && icon(rowIcon(row)),
      button(file, () => this.open(entry), {
        class: "link path",
        title: visible(path),
        "aria-label": `Show the changes in ${what}`,
        "data-key": `open ${key}`,
      }),
      this.told(entry),
      conflicts > 0 && h("span", { class: "error" }, plural(conflicts, "conflict")),
      row === undefined && counts(entry.added, entry.removed),
      isSettleable(entry) &&
        iconButton("check", `${yes} ${what}${needing(row)}`, () => this.settle([entry], true, null), {
          "data-key": `yes ${key}`,
        }),
      isSettleable(entry) &&
        iconButton(
          entry.open > 0 ? "close" : "discard",
          `${no} ${what}`,
          () => this.settle([entry], false, entry.open > 0 ? "decision" : "review"),
          { "data-key": `no ${key}` },
        ),
    );
  }

  /** Its folder and, for a row, its title. What the user must know before a yes is not cut off. */
  private told(entry: Entry): HTMLElement {
    const { path, row } = entry;
    const at = visible(within(path.slice(0, -path.split(/[\\/]/).pop()!.length - 1), this.view));
    if (row === undefined) return h("span", { class: "aside folder", "aria-hidden": "true" }, at);
    if (!isSettleable(entry)) return h("span", { class: "aside told" }, visible(row.undecidable));
    const needs = needing(row).trim();
    const words = [needs, rowTitle(row), row.kind === "git" ? "" : at].filter(Boolean).join(" · ");
    return h("span", { class: `aside ${needs === "" ? "folder" : "told"}`, title: words }, words);
  }

  private unfold(): void {
    this.unfolded = !this.unfolded;
    this.stale = true;
    this.update();
  }

  private open({ targets: [first] }: Entry): void {
    if (first === undefined) return;
    const { proposal, file, row } = first;
    const rowId = row && { rowId: row.rowId };
    this.view.post({ type: "openDiff", proposalId: proposal.proposalId, path: file.path, ...rowId });
  }

  private settle(chosen: Entry[], yes: boolean, only: Only): void {
    const files = chosen.flatMap(({ targets }) =>
      targets
        .filter(isDecidable)
        .map(({ proposal: { proposalId, version }, file: { path }, row }): SeenFile => ({
          proposalId,
          version,
          path,
          ...(row && { rowId: row.rowId }),
        })),
    );
    this.view.post({ type: "settle", files, yes, only });
  }
}

/** Whether any of it can be decided. */
function isSettleable({ targets }: Entry): boolean {
  return targets.some(isDecidable);
}

function counts(added: number, removed: number): HTMLElement {
  return h(
    "span",
    { class: "stat" },
    h("span", { class: "plus" }, `+${added}`),
    " ",
    h("span", { class: "minus" }, `−${removed}`),
  );
}

/** A path below one of the session's folders. */
function within(folder: string, { session }: ChatView): string {
  const root = session.state.roots.find((each) => folder === each || folder.startsWith(`${each}/`));
  return root === undefined ? folder : folder.slice(root.length + 1);
}
