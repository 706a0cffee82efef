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
import { name } from "../../changes";
import { visible } from "../../visible";
import type { ToView } from "../messages";
import { AgentCard } from "./agent";
import { CitationsCard } from "./citations";
import { type Desk, hasCheckpoint } from "./desk";
import { button, h, setText } from "./dom";
import { Markdown } from "./markdown";
import { NoticeCard } from "./notice";
import { todoLines } from "./todos";
import { QuestionCard } from "./question";
import { ToolCard } from "./tool";

/** The tool that hands work to a sub-agent. */
const RUN_AGENT = "run_agent";

/** One item, drawn. `update` touches only what differs. */
export interface Card {
  readonly element: HTMLElement;
  update(item: Item): void;
  /** What the daemon says of a rule that is edited on it. */
  checked?(message: Extract<ToView, { type: "rule" }>): void;
}

export function makeCard(item: Item, desk: Desk): Card {
  switch (item.kind) {
    case "userMessage":
      return new UserCard(desk);
    case "thought":
      return new ThoughtCard();
    case "answer":
      return new AnswerCard();
    case "toolCall":
      return item.tool === RUN_AGENT ? new AgentCard(desk, makeCard) : new ToolCard(desk);
    case "todoList":
      return new TodoListCard();
    case "notice":
      return new NoticeCard(desk);
    case "citations":
      return new CitationsCard();
    case "question":
      return new QuestionCard(desk);
  }
}

class UserCard implements Card {
  readonly element = h("article", { class: "card user", "aria-label": "You" });

  constructor(private readonly desk: Desk) {}

  update(item: Item): void {
    const message = item as UserMessage;
    const { turnId } = message;
    const restore = () => this.desk.post({ type: "turn", what: "restore", turnId });
    this.element.replaceChildren(
      !message.steer && hasCheckpoint(this.desk.session.state, turnId)
        ? button("⟲ Restore…", restore, {
            class: "link restore",
            title: "Go back to before this prompt: files, or files and conversation",
          })
        : "",
      h("div", { class: "text" }, message.text),
      ...message.attachments.map((each) => this.attachment(each)),
      ...(message.steer ? [h("div", { class: "aside" }, "said into the running turn")] : []),
    );
  }

  private attachment(attachment: Attachment): HTMLElement {
    if (attachment.kind === "image") return this.picture(attachment);
    const line = attachment.startLine;
    return button(
      label(attachment),
      () => this.desk.post({ type: "openFile", path: attachment.path, line }),
      {
        class: "chip",
      },
    );
  }

  /** The name at once, the picture when the extension has fetched it. */
  private picture({ name, mediaType, blob }: ImageAttachment): HTMLElement {
    if (blob === null) return h("span", { class: "chip" }, name);
    this.desk.post({ type: "picture", blobId: blob.blobId, mediaType });
    return h("figure", {}, h("img", { "data-blob": blob.blobId, alt: name }), h("figcaption", {}, name));
  }
}

/** A short name for what goes with a prompt. */
export function label(attachment: AttachmentInput): string {
  if (attachment.kind === "image") return visible(attachment.name);
  const file = name(attachment.path);
  const { startLine, endLine } = attachment;
  if (!startLine) return file;
  if (attachment.kind === "comment") return `${file}:${startLine} “${attachment.comment}”`;
  return startLine === endLine || !endLine ? `${file}:${startLine}` : `${file}:${startLine}–${endLine}`;
}

class AnswerCard implements Card {
  private readonly markdown = new Markdown();
  readonly element = h("article", { class: "card answer", "aria-label": "Amanu" }, this.markdown.element);

  update(item: Item): void {
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
