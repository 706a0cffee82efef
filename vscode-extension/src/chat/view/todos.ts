import type { Todo } from "../../protocol";
import { visible } from "../../editor/visible";
import type { ChatView } from "./chatView";
import { h, setText } from "./dom";
import { icon } from "./icon";

const MARKS: Record<Todo["status"], [icon: string, words: string]> = {
  pending: ["circle-outline", "to do"],
  inProgress: ["record", "in progress"],
  done: ["pass-filled", "done"],
  cancelled: ["circle-slash", "cancelled"],
};

export function todoLines(todos: Todo[]): HTMLElement {
  return h(
    "ul",
    {},
    ...todos.map(({ status, text }) => {
      const [mark, words] = MARKS[status];
      return h("li", { class: status }, h("span", { class: "mark" }, icon(mark, words)), visible(text));
    }),
  );
}

/** Over the prompt box: what the model means to do, on one line; the whole list on demand. */
export class Todos {
  private readonly summary = h("summary", {});
  readonly element = h(
    "details",
    { class: "todos strip", "aria-label": "To-dos", hidden: true },
    this.summary,
  );

  private shown: Todo[] | undefined;

  constructor(private readonly view: ChatView) {}

  update(): void {
    const { todos, todosSummary } = this.view.session.state;
    if (todos === this.shown) return;
    this.shown = todos;
    this.element.hidden = todos.length === 0;
    setText(this.summary, visible(todosSummary));
    this.element.replaceChildren(this.summary, todoLines(todos));
  }
}
