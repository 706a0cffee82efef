import { name, plural } from "../../review/changes";
import type { AttachmentInput, SessionSummary } from "../../protocol";
import { visible } from "../../editor/visible";
import type { ToView } from "../messages";
import { ACTIONS } from "./actions";
import type { ChatView } from "./chatView";
import { button, h } from "./dom";
import { icon } from "./icon";
import { ago } from "./sessionRow";

type Starters = Extract<ToView, { type: "starters" }>;
/** Sessions to go on with. */
const RECENT = 3;

/** Before the first prompt: what Amanu is, something to do at a click, and where the user left off. */
export class Welcome {
  private readonly starters = h("div", { class: "starters", role: "group", "aria-label": "Suggestions" });
  private readonly recents = h("section", { class: "recents", "aria-label": "Recent sessions" });
  private readonly ready = h("div", { class: "ready" }, this.starters, this.recents, keys());
  readonly element = h(
    "section",
    { class: "welcome", "aria-label": "Welcome" },
    h("h3", {}, "What do you want to build?"),
    h("p", {}, "Nothing in your workspace changes until you say so."),
    this.ready,
    button(ACTIONS.start, () => this.view.post({ type: "action", action: "start" }), { class: "link" }),
  );
  private drawn = "";

  constructor(private readonly view: ChatView) {
    this.offer({ type: "starters", file: null, problems: 0, changes: 0 });
  }

  /** `hindered`: something is to be done first, which is said above. */
  update(hindered: boolean): void {
    this.element.hidden = this.view.session.state.items.length > 0;
    this.ready.hidden = hindered;
  }

  offer({ file, problems, changes }: Starters): void {
    const key = JSON.stringify([file, problems, changes]);
    if (key === this.drawn) return; // a button that is drawn anew loses the focus
    this.drawn = key;
    const path = file ?? "";
    const what = visible(name(path));
    this.starters.replaceChildren(
      ...[
        problems > 0 && this.starter("wrench", `Fix ${plural(problems, "problem")} in ${what}`, path),
        changes > 0 && this.starter("git-compare", "Review my uncommitted changes"),
        file !== null && this.starter("beaker", `Write tests for ${what}`, path),
        file !== null && this.starter("comment-discussion", `Explain ${what}`, path),
        this.starter("book", "Explain this project"),
      ]
        .filter((each) => each !== false)
        .slice(0, 4),
    );
  }

  recent(sessions: SessionSummary[], current: string): void {
    const shown = sessions.filter(({ sessionId }) => sessionId !== current).slice(0, RECENT);
    this.recents.hidden = shown.length === 0;
    this.recents.replaceChildren(
      h("h4", {}, "Recent"),
      ...shown.map(({ sessionId, title, updatedAt }) =>
        h(
          "button",
          { type: "button", class: "row", onclick: () => this.view.post({ type: "open", sessionId }) },
          icon("comment"),
          h("span", { class: "name" }, visible(title) || "Untitled"),
          h("span", { class: "aside" }, ago(updatedAt, Date.now())),
        ),
      ),
      button("All sessions…", () => this.view.post({ type: "action", action: "sessions" }), {
        class: "link",
      }),
    );
  }

  /** Said at once. */
  private starter(picture: string, text: string, path = ""): HTMLElement {
    const attachments: AttachmentInput[] = path === "" ? [] : [{ kind: "file", path }];
    const say = () => this.view.post({ type: "prompt", text: `${text}.`, attachments, how: "send" });
    return h("button", { type: "button", class: "row", onclick: say }, icon(picture), h("span", {}, text));
  }
}

function keys(): HTMLElement {
  return h(
    "p",
    { class: "hint" },
    h("kbd", {}, "@"),
    " adds context, ",
    h("kbd", {}, "/"),
    " lists commands, ",
    h("kbd", {}, "Shift+Enter"),
    " begins a new line.",
  );
}
