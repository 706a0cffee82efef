import { plural } from "../../review/changes";
import type { SessionSummary } from "../../protocol";
import { oneLine, visible } from "../../editor/visible";
import { button, h } from "./dom";
import { iconButton } from "./icon";

/** Under which heading a session stands, in the order in which they stand. */
const GROUPS = ["Waiting for you", "Running", "Today", "Earlier"] as const;
export type Group = (typeof GROUPS)[number];

/** What can be done with a session of the list. */
export interface RowActions {
  open(session: SessionSummary): void;
  openInEditor(session: SessionSummary): void;
  rename(session: SessionSummary): void;
  remove(session: SessionSummary): void;
}

/** The sessions under their headings, each as the daemon orders them; headings over nothing are left out. */
export function grouped(
  sessions: SessionSummary[],
  now: number,
): { group: Group; sessions: SessionSummary[] }[] {
  return GROUPS.map((group) => ({
    group,
    sessions: sessions.filter((session) => groupOf(session, now) === group),
  })).filter(({ sessions }) => sessions.length > 0);
}

export function name(session: SessionSummary): string {
  return session.title || "Untitled";
}

/** How it stands, in words: what it waits for, what is to be reviewed. */
export function standing({ status, questions, changes }: SessionSummary): string[] {
  const [question, ...more] = questions;
  const review = changes > 0 ? [`${changes} to review`] : [];
  if (question !== undefined)
    return [`${oneLine(question.title)}${more.length > 0 ? ` (and ${more.length} more)` : ""}`, ...review];
  return [...(status === "running" || status === "interrupted" ? [status] : []), ...review];
}

/** What came of it: files and lines, cost, model. */
export function facts(session: SessionSummary, model: string): string[] {
  const { files, added, removed, cost } = session;
  return [
    ...(files > 0 ? [`${plural(files, "file")} +${added} −${removed}`] : []),
    ...(cost ? [cost] : []),
    ...(model ? [model] : []),
  ];
}

export function row(
  session: SessionSummary,
  current: boolean,
  model: string,
  actions: RowActions,
): HTMLElement {
  const stands = standing(session);
  const known = facts(session, model);
  const age = ago(session.updatedAt, Date.now());
  const state = session.questions.length > 0 ? "waiting" : session.status;
  return h(
    "li",
    { class: current ? "current" : "", "data-session": session.sessionId },
    button("", () => actions.open(session), {
      class: "open",
      "aria-label": [`Open ${name(session)}`, ...stands, ...known, age].join(", "),
      "aria-keyshortcuts": "Enter Control+Enter F2 Delete",
      title: "Enter opens it here, Ctrl+Enter in an editor tab, F2 renames it, Delete deletes it",
      ...(current ? { "aria-current": "true" } : {}),
    }),
    h("span", { class: `dot ${state}`, "aria-hidden": "true" }),
    h("span", { class: "name" }, visible(name(session))),
    h("span", { class: "aside" }, age),
    stands.length > 0 && h("span", { class: `stands ${state}` }, visible(stands.join(" · "))),
    h("span", { class: "aside facts" }, known.join(" · ")),
    h(
      "span",
      { class: "doings" },
      iconButton("go-to-file", `Open ${name(session)} in an editor tab`, () => actions.openInEditor(session)),
      iconButton("edit", `Rename ${name(session)}`, () => actions.rename(session)),
      iconButton("trash", `Delete ${name(session)}`, () => actions.remove(session)),
    ),
  );
}

/** How long ago, in words. */
export function ago(then: number, now: number): string {
  const minutes = Math.floor((now - then) / 60_000);
  if (minutes < 1) return "now";
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 24 ? `${hours} h` : `${Math.floor(hours / 24)} d`;
}

function groupOf({ questions, status, updatedAt }: SessionSummary, now: number): Group {
  if (questions.length > 0) return "Waiting for you";
  if (status === "running") return "Running";
  return new Date(updatedAt).toDateString() === new Date(now).toDateString() ? "Today" : "Earlier";
}
