import * as vscode from "vscode";
import type { Target } from "./changes";
import { type Place, waits } from "./hunks";
import type { Check, Finding, Hunk, SessionState } from "./protocol";

/** Characters of a prompt that name a turn. */
const PROMPT = 60;

/** What a change is for, what checkers say of it, and where it comes from, for a hover: text and a diff, no links. */
export function why(
  state: SessionState,
  target: Target,
  place: Place,
  withDiff: boolean,
): vscode.MarkdownString {
  const text = new vscode.MarkdownString();
  text.appendText(reasons(state, target, place).join("\n"));
  if (withDiff) {
    const { oldText, newText } = place.hunk;
    text.appendCodeblock(signed("-", oldText) + signed("+", newText), "diff");
  }
  return text;
}

/** The lines of it. */
export function reasons(
  { items }: SessionState,
  { proposal, file }: Target,
  { hunk, start, lines }: Place,
): string[] {
  const said = items.find((item) => item.kind === "userMessage" && item.turnId === proposal.turnId);
  const prompt = said?.kind === "userMessage" ? oneLine(said.text) : "";
  return [
    `Amanu: ${standing(hunk)}`,
    ...(hunk.explanation === "" ? [] : [hunk.explanation]),
    ...(hunk.reason === null ? [] : [hunk.reason]),
    ...file.checks.flatMap((check) => verdict(check, start + 1, start + Math.max(1, lines))),
    ...(prompt === "" ? [] : [`Asked for: “${prompt}”`]),
  ];
}

function standing(hunk: Hunk): string {
  const mine = hunk.editedByPerson ? ", with your changes" : "";
  if (waits(hunk) === "review") return `applied by a rule, waits for your review${mine}`;
  const words = {
    pending: "proposed, nothing is written yet",
    accepted: "being applied",
    applied: "applied",
    rejected: "rejected",
    conflicted: "in conflict, nothing was overwritten",
    undoing: "being undone",
    revertedByPerson: "taken back",
  }[hunk.state];
  return words + mine;
}

/** What a checker says of the whole change, and its findings in these lines. */
export function verdict(check: Check, from: number, to: number): string[] {
  if (check.state === "running") return [`${check.checker} looks at it…`];
  if (check.state === "failed") return [`${check.checker}: ${check.message ?? "could not look at it"}`];
  const tense = check.about === "proposed" ? ["adds", "fixes"] : ["added", "fixed"];
  const parts = [
    ...count(check.added).map((each) => `${tense[0]} ${each}`),
    ...(check.fixed > 0 ? [`${tense[1]} ${check.fixed}`] : []),
  ];
  if (parts.length === 0) return [`${check.checker}: nothing new`];
  const here = check.added.filter(({ startLine, endLine }) => startLine <= to && endLine >= from);
  return [
    `${check.checker}: ${parts.join(", ")}`,
    ...here.map(({ startLine, message }) => `  line ${startLine}: ${oneLine(message, 200)}`),
  ];
}

function count(added: Finding[]): string[] {
  return (["error", "warning", "information", "hint"] as const).flatMap((severity) => {
    const found = added.filter((each) => each.severity === severity).length;
    return found === 0 ? [] : [`${found} ${severity}${found > 1 && severity !== "information" ? "s" : ""}`];
  });
}

function signed(sign: string, lines: string): string {
  if (lines === "") return "";
  return lines
    .replace(/\r?\n$/, "")
    .split(/\r?\n/)
    .map((line) => `${sign}${line}\n`)
    .join("");
}

function oneLine(text: string, most = PROMPT): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, most)}…` : line;
}
