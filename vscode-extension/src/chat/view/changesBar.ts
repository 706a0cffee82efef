import { name, plural, type Row, rows } from "../../changes";
import { waits } from "../../hunks";
import type { Proposal } from "../../protocol";
import { visible } from "../../visible";
import type { Desk } from "./desk";
import { button, h } from "./dom";
import { iconButton } from "./icon";

/** What is to be decided: what is proposed, what a rule applied, or both. */
type Only = "decision" | "review" | null;

const MOST_NAMED = 20;

/** Over the prompt box: how much waits for the user's review, and behind it which files. */
export class ChangesBar {
  readonly element = h("section", { class: "changes", "aria-label": "Changes to review", hidden: true });
  /** The proposals with something that waits: an event must not cost a look at all that ever was. */
  private waiting = new Map<string, Proposal>();
  private stale = true;
  private unfolded = false;

  constructor(private readonly desk: Desk) {}

  /** Another session is shown. */
  reset(): void {
    this.waiting = new Map();
    for (const proposal of this.desk.session.state.proposals) this.note(proposal);
    this.stale = true;
  }

  note(proposal: Proposal): void {
    if (proposal.files.some(({ hunks }) => hunks.some((hunk) => waits(hunk) !== undefined)))
      this.waiting.set(proposal.proposalId, proposal);
    else if (!this.waiting.delete(proposal.proposalId)) return;
    this.stale = true;
  }

  update(): void {
    if (!this.stale) return;
    this.stale = false;
    const { sessionId } = this.desk.session.state;
    const found = rows([{ sessionId, proposals: [...this.waiting.values()] }]);
    this.element.hidden = found.length === 0;
    const at = this.element.contains(document.activeElement)
      ? (document.activeElement as HTMLElement).dataset.key
      : undefined;
    this.element.replaceChildren(
      ...(found.length === 0 ? [] : [this.head(found), ...this.besides(), this.list(found)]),
    );
    // who decides by keyboard goes on from there
    if (at === undefined) return;
    const same = this.element.querySelector<HTMLElement>(`[data-key="${CSS.escape(at)}"]`);
    (same ?? this.element.querySelector<HTMLElement>("[data-key=unfold]"))?.focus();
  }

  private head(found: Row[]): HTMLElement {
    const sum = (key: "open" | "review" | "added" | "removed") =>
      found.reduce((total, row) => total + row[key], 0);
    const [open, review] = [sum("open") > 0, sum("review") > 0];
    const unfold = button(plural(found.length, "file"), () => this.unfold(), {
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
      counts(sum("added"), sum("removed")),
      button("Review", () => this.desk.post({ type: "turn", what: "review", turnId: "" }), {
        class: "link review",
        title: "Show the changes in the editor",
        "data-key": "review",
      }),
      button(yes, () => this.settle(found, true, null), {
        class: "primary",
        "data-key": "yes",
        title: open && review ? "Accepts what is proposed and keeps what is applied" : "",
      }),
    );
  }

  /** What no hunk shows of the draft: it comes with the rest. */
  private besides(): HTMLElement[] {
    const drafts = [...this.waiting.values()].filter(({ draft, state }) => draft && state === "pending");
    const names = drafts.flatMap(({ besides }) => besides.map((path) => visible(within(path, this.desk))));
    if (names.length === 0) return [];
    const more = names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : "";
    const listed = names.slice(0, MOST_NAMED).join(", ") + more;
    return [h("p", { class: "aside" }, `Also applied if you accept the whole draft: ${listed}.`)];
  }

  private list(found: Row[]): HTMLElement {
    const some = (key: "open" | "review") => found.some((row) => row[key] > 0);
    const refuse = (words: string, only: "decision" | "review") =>
      button(words, () => this.settle(found, false, only), { class: "link", "data-key": words });
    return h(
      "ul",
      { id: "changed-files", hidden: !this.unfolded },
      ...found.map((row) => {
        const [yes, no] = row.open > 0 ? ["Accept", "Reject"] : ["Keep", "Undo"];
        const file = name(row.path);
        const folder = visible(row.path.slice(0, -row.path.split(/[\\/]/).pop()!.length - 1));
        const conflicts = row.conflicts > 0 ? plural(row.conflicts, "conflict") : "";
        return h(
          "li",
          { class: "row" },
          button(file, () => this.open(row), {
            class: "link path",
            title: visible(row.path),
            "aria-label": `Show the changes in ${file}`,
            "data-key": `open ${row.path}`,
          }),
          h("span", { class: "aside folder", "aria-hidden": "true" }, within(folder, this.desk)),
          conflicts !== "" && h("span", { class: "error" }, conflicts),
          counts(row.added, row.removed),
          iconButton("check", `${yes} ${file}`, () => this.settle([row], true, null), {
            "data-key": `yes ${row.path}`,
          }),
          iconButton(
            row.open > 0 ? "close" : "discard",
            `${no} ${file}`,
            () => this.settle([row], false, row.open > 0 ? "decision" : "review"),
            { "data-key": `no ${row.path}` },
          ),
        );
      }),
      h(
        "li",
        { class: "row" },
        h("span", { class: "space" }),
        some("open") && refuse("Reject all", "decision"),
        some("review") && refuse("Undo all", "review"),
      ),
    );
  }

  private unfold(): void {
    this.unfolded = !this.unfolded;
    this.stale = true;
    this.update();
  }

  private open({ targets: [first] }: Row): void {
    if (first === undefined) return;
    const { proposal, file } = first;
    this.desk.post({ type: "openDiff", proposalId: proposal.proposalId, path: file.path });
  }

  private settle(chosen: Row[], yes: boolean, only: Only): void {
    const files = chosen.flatMap(({ targets }) =>
      targets.map(({ proposal: { proposalId, version }, file: { path } }) => ({ proposalId, version, path })),
    );
    this.desk.post({ type: "settle", files, yes, only });
  }
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
function within(folder: string, { session }: Desk): string {
  const root = session.state.roots.find((each) => folder === each || folder.startsWith(`${each}/`));
  return root === undefined ? folder : folder.slice(root.length + 1);
}
