import type {
  Answer,
  Attachment,
  AttachmentInput,
  ImageAttachment,
  Item,
  Thought,
  TodoList,
  UserMessage,
} from "../../protocol";
import { name, plural } from "../../review/changes";
import { visible } from "../../editor/visible";
import { AgentCard } from "./agent";
import { CitationsCard } from "./citations";
import { type Card, type ChatView, hasCheckpoint } from "./chatView";
import { button, h, setText } from "./dom";
import { iconButton } from "./icon";
import { ReadsCard } from "./readsCard";
import { Markdown } from "./markdown";
import { NoticeCard } from "./notice";
import { todoLines } from "./todos";
import { QuestionCard } from "./question";
import type { Row } from "./rows";
import { ToolCard } from "./tool";

/** The tool that hands work to a sub-agent. */
const RUN_AGENT = "run_agent";

/** `item` is the row's first. */
export function makeRow(row: Row, item: Item, view: ChatView): Card {
  return row.looks ? new ReadsCard(view, row, makeCard) : makeCard(item, view);
}

export function makeCard(item: Item, view: ChatView): Card {
  switch (item.kind) {
    case "userMessage":
      return new UserCard(view);
    case "thought":
      return new ThoughtCard();
    case "answer":
      return new AnswerCard(view);
    case "toolCall":
      return item.tool === RUN_AGENT ? new AgentCard(view, makeRow) : new ToolCard(view);
    case "todoList":
      return new TodoListCard();
    case "notice":
      return new NoticeCard(view);
    case "citations":
      return new CitationsCard();
    case "question":
      return new QuestionCard(view);
  }
}

/** Lines and characters of a prompt that are shown at first, if it has more than twice as many: a pasted log is long. */
const LINES = 15;
const CHARACTERS = 3_000;

class UserCard implements Card {
  readonly element = h("article", { class: "card user", "aria-label": "You" });
  /** The user wants to see all of a long one. */
  private isUnfolded = false;

  constructor(private readonly view: ChatView) {}

  update(item: Item): void {
    const message = item as UserMessage;
    offers(this.element, "amanuPrompt", this.view, message.itemId);
    this.element.replaceChildren(
      ...(message.steer ? [] : [this.actions(message)]),
      ...this.text(withoutBlock(message.text)),
      ...message.attachments.map((each) => this.attachment(each)),
      ...(message.steer ? [h("div", { class: "aside" }, "added to the running turn")] : []),
    );
  }

  private text(text: string): HTMLElement[] {
    const lines = text.split("\n");
    const isLong = lines.length > 2 * LINES || text.length > 2 * CHARACTERS;
    if (!isLong || this.isUnfolded) return [h("div", { class: "text" }, text)];
    const begin = lines.slice(0, LINES).join("\n").slice(0, CHARACTERS);
    const whole = h("div", { class: "text" }, `${begin} …`);
    const size = lines.length > LINES ? plural(lines.length, "line") : plural(text.length, "character");
    const all = button(`Show all ${size}`, () => {
      this.isUnfolded = true;
      setText(whole, text);
      all.remove();
    });
    all.className = "link";
    return [whole, all];
  }

  /** On hover, on focus, and in the context menu. */
  private actions({ itemId, turnId }: UserMessage): HTMLElement {
    const restore = () => this.view.post({ type: "turn", what: "restore", turnId });
    return h(
      "div",
      { class: "actions", role: "toolbar", "aria-label": "Actions for this message" },
      iconButton("edit", "Edit and resend", () => this.view.post({ type: "edit", itemId }), {
        class: "edit",
      }),
      hasCheckpoint(this.view.session.state, turnId) &&
        iconButton("discard", "Restore checkpoint: go back to before this message", restore, {
          class: "restore",
        }),
    );
  }

  private attachment(attachment: Attachment): HTMLElement {
    if (attachment.kind === "image") return this.picture(attachment);
    const line = attachment.lines === null ? null : attachment.lines.start + 1;
    return button(
      label(attachment),
      () => this.view.post({ type: "openFile", path: attachment.path, line }),
      {
        class: "chip",
      },
    );
  }

  /** The name at once, the picture when the extension has fetched it. */
  private picture({ name, mediaType, blob }: ImageAttachment): HTMLElement {
    if (blob === null) return h("span", { class: "chip" }, name);
    this.view.post({ type: "picture", blobId: blob.blobId, mediaType });
    return h("figure", {}, h("img", { "data-blob": blob.blobId, alt: name }), h("figcaption", {}, name));
  }
}

/** What was said by a block's Apply: the block itself stands in the answer. */
function withoutBlock(text: string): string {
  return /^(\/apply \S[^\n]*)\n\s*(?:```|~~~)/.exec(text)?.[1] ?? text;
}

/** A short name for what goes with a prompt. */
export function label(attachment: AttachmentInput): string {
  if (attachment.kind === "image") return visible(attachment.name);
  if (attachment.path === "@terminal") return "Terminal";
  const file = name(attachment.path);
  const { lines } = attachment;
  if (!lines) return file;
  const first = lines.start + 1;
  if (attachment.kind === "comment") return `${file}:${first} “${attachment.comment}”`;
  return lines.end <= first ? `${file}:${first}` : `${file}:${first}–${lines.end}`;
}

/** What VS Code's context menu offers there (`webview/context` in package.json), and about what. */
function offers(element: HTMLElement, webviewSection: string, view: ChatView, itemId: string): void {
  const { sessionId } = view.session.state;
  element.dataset.vscodeContext = JSON.stringify({ webviewSection, sessionId, itemId });
}

class AnswerCard implements Card {
  private readonly markdown = new Markdown();
  readonly element = h("article", { class: "card answer", "aria-label": "Amanu" }, this.markdown.element);

  constructor(private readonly view: ChatView) {}

  update(item: Item): void {
    offers(this.element, "amanuAnswer", this.view, item.itemId);
    this.markdown.update((item as Answer).text);
  }
}

class ThoughtCard implements Card {
  private readonly markdown = new Markdown();
  private readonly subject = h("span", { class: "subject" });
  private readonly details = h(
    "details",
    { ontoggle: () => this.draw() },
    h("summary", {}, this.subject),
    this.markdown.element,
  );
  readonly element = h("article", { class: "card thought", "aria-label": "Thought" }, this.details);
  private text = "";

  update(item: Item): void {
    const thought = item as Thought;
    this.text = thought.text;
    setText(this.subject, thought.subject || subject(thought.text) || "Thinking");
    this.draw();
  }

  /** What is folded away costs nothing. */
  private draw(): void {
    if (this.details.open) this.markdown.update(this.text);
  }
}

/** The latest bold heading of a thought that still grows: what it is about now. */
export function subject(text: string): string {
  const found = [...text.matchAll(/^\*\*([^*\n]+)\*\*\s*$/gm)].pop();
  return found?.[1]?.trim() ?? "";
}

class TodoListCard implements Card {
  readonly element = h("article", { class: "card todos", "aria-label": "To-dos" });

  update(item: Item): void {
    this.element.replaceChildren(todoLines((item as TodoList).todos));
  }
}
