import * as vscode from "vscode";
import type { Chat } from "../chat/chat";
import type { OpenChats } from "../chat/openChats";
import { BUTTONS } from "../labels";
import type { Question, QuestionField } from "../protocol";
import { plain } from "../editor/visible";

/** Characters of a question above its answers. */
const ASKED = 200;

interface Choice extends vscode.QuickPickItem {
  value?: unknown;
  does?: "own" | "decline";
}

/** The keyboard's way to an answer: a quick pick or an input box for each field, opened only by the user. */
export class Questions {
  constructor(private readonly openChats: Pick<OpenChats, "active">) {}

  /** Ask what is open, the oldest first. False when nothing is. */
  async answer(): Promise<boolean> {
    const chat: Chat = this.openChats.active;
    const [question] = chat.state.questions;
    if (question === undefined) return false;
    const answers: Record<string, unknown> = {};
    for (const field of question.fields) {
      const answer = await ask(question, field);
      if (answer === undefined) return true; // left: the question stands
      if (answer === DECLINED) {
        const note = await vscode.window.showInputBox({
          title: BUTTONS.decline,
          prompt: "Reason (optional)",
        });
        if (note !== undefined) await chat.answer(question.itemId, "declined", {}, note);
        return true;
      }
      if (answer !== NONE) answers[field.fieldId] = answer;
    }
    await chat.answer(question.itemId, "answered", answers, "");
    return true;
  }
}

const DECLINED = Symbol("declined");
const NONE = Symbol("none");

async function ask(question: Question, field: QuestionField): Promise<unknown> {
  const title = `${plain(question.asker)} asks${field.header === "" ? "" : `: ${plain(field.header)}`}`;
  const items: Choice[] =
    field.kind === "confirm"
      ? [
          { label: BUTTONS.yes, value: true },
          { label: BUTTONS.no, value: false },
        ]
      : field.options.map(({ label, description }) => ({
          label: plain(label, ASKED),
          detail: plain(description, ASKED),
          value: label,
        }));
  if (items.length === 0) return write(title, field);
  if (field.other) items.push({ label: BUTTONS.other, does: "own" });
  const decline: Choice = { label: BUTTONS.decline, does: "decline" };
  const shown = { title, placeHolder: plain(field.text, ASKED), ignoreFocusOut: true };
  if (field.kind !== "choices") {
    const chosen = await vscode.window.showQuickPick([...items, decline], shown);
    if (chosen?.does === "decline") return DECLINED;
    return chosen?.does === "own" ? write(title, field) : chosen?.value;
  }
  const chosen = await vscode.window.showQuickPick([...items, decline], { ...shown, canPickMany: true });
  if (chosen === undefined) return undefined;
  if (chosen.some(({ does }) => does === "decline")) return DECLINED;
  const values = chosen.filter(({ does }) => does === undefined).map(({ value }) => value);
  if (!chosen.some(({ does }) => does === "own")) return values;
  const own = await write(title, field);
  return typeof own === "string" ? [...values, own] : own;
}

/** A text of the user's own. If it is empty where one is needed, the question is declined. */
async function write(title: string, field: QuestionField): Promise<unknown> {
  const text = await vscode.window.showInputBox({
    title,
    prompt: plain(field.text, ASKED),
    placeHolder: plain(field.placeholder),
    value: typeof field.default === "string" ? field.default : "",
    ignoreFocusOut: true,
  });
  if (text === undefined || text.trim() !== "") return text;
  return field.required ? DECLINED : NONE;
}
