import * as vscode from "vscode";
import type { Target } from "./changes";
import { altered } from "./hunks";
import type { Place } from "./places";
import type { Hunk, Item } from "../protocol";
import { verdict } from "./verdict";
import { oneLine, visible } from "../editor/visible";

/** Characters of a prompt that name a turn. */
const PROMPT = 60;

/** What a change is for, what checkers say of it, and where it comes from, for a hover: text and a diff, no links. */
export function why(items: Item[], target: Target, place: Place, withDiff: boolean): vscode.MarkdownString {
  const text = new vscode.MarkdownString();
  text.isTrusted = false; // no command links, whatever is in it
  text.supportHtml = false;
  text.appendText(reasons(items, target, place).join("\n"));
  if (withDiff) {
    const { oldText, newText } = place.hunk;
    text.appendCodeblock(visible(signed("-", oldText) + signed("+", newText)), "diff");
  }
  return text;
}

/** The lines of it, nothing hidden in them. */
export function reasons(
  items: Item[],
  { proposal, file }: Pick<Target, "proposal" | "file">,
  { hunk, start, lines }: Place,
): string[] {
  const said = items.find((item) => item.kind === "userMessage" && item.turnId === proposal.turnId);
  const prompt = said?.kind === "userMessage" ? oneLine(said.text, PROMPT) : "";
  return [
    `Amanu: ${standing(hunk)}`,
    ...(hunk.explanation === "" ? [] : [visible(hunk.explanation)]),
    ...(hunk.reason === null ? [] : [visible(hunk.reason)]),
    ...file.checks.flatMap((check) => verdict(check, start + 1, start + Math.max(1, lines))),
    ...(prompt === "" ? [] : [`Asked for: “${prompt}”`]),
  ];
}

function standing(hunk: Hunk): string {
  const mine = altered(hunk);
  if (hunk.waits === "review") return `applied by a rule, to be reviewed${mine}`;
  const words = {
    pending: "proposed, nothing is written yet",
    accepted: "being applied",
    applied: "applied",
    rejected: "rejected",
    conflicted: "in conflict, nothing was overwritten",
    undoing: "being undone",
    reverted: "undone",
  }[hunk.state];
  return words + mine;
}

function signed(sign: string, lines: string): string {
  if (lines === "") return "";
  return lines
    .replace(/\r?\n$/, "")
    .split(/\r?\n/)
    .map((line) => `${sign}${line}\n`)
    .join("");
}
