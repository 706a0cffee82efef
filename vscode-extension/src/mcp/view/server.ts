import { button, h, setText } from "../../chat/view/dom";
import { plural } from "../../review/changes";
import type { McpChangedTool, McpServer, McpTool } from "../../protocol";
import { visible } from "../../editor/visible";
import type { ToServersHost } from "../messages";

/** Whether a server can be stopped, and started again. */
const AGREED: ReadonlySet<McpServer["state"]> = new Set([
  "configured",
  "starting",
  "ready",
  "failed",
  "needsSignIn",
]);

/** One server: how it stands, what it starts and may do, its tools, and what the user can decide. */
export class ServerCard {
  private readonly name = h("h2", {});
  private readonly state = h("p", { class: "headline" });
  private readonly reason = h("p", { class: "reason" });
  private readonly kind = h("dt", {});
  private readonly target = h("pre", { tabindex: "0" });
  private readonly access = h("dd", {});
  private readonly source = h("dd", {});
  private readonly buttons = h("div", { class: "row" });
  private readonly note = h("p", { class: "note", role: "status", hidden: true });
  private readonly changes = h("section", { class: "changes", "aria-label": "New or changed tools" });
  private readonly tools = h("details", { class: "tools" });
  readonly element = h(
    "article",
    { class: "server", tabindex: "-1" },
    this.name,
    this.state,
    this.reason,
    h(
      "dl",
      {},
      this.kind,
      h("dd", {}, this.target),
      h("dt", {}, "Access"),
      this.access,
      h("dt", {}, "Configured in"),
      this.source,
    ),
    this.changes,
    this.buttons,
    this.note,
    this.tools,
  );
  private shown = "";

  constructor(private readonly post: (message: ToServersHost) => void) {}

  update(server: McpServer): void {
    const drawn = JSON.stringify(server);
    if (drawn === this.shown) return; // what is unfolded or has the focus stays
    this.shown = drawn;
    const [first] = server.lines;
    this.element.dataset.state = server.state;
    this.element.setAttribute("aria-label", visible(first?.text ?? server.name));
    setText(this.name, visible(server.name));
    const tone = first?.tone ?? "plain";
    this.state.className = `headline ${tone === "good" && server.changedTools.length > 0 ? "warning" : tone}`;
    setText(this.state, rest(first?.text ?? "", server));
    this.reason.hidden = server.reason === "";
    setText(this.reason, visible(server.reason));
    setText(this.kind, /^https?:/i.test(server.target) ? "Address" : "Command");
    setText(this.target, visible(server.target));
    setText(this.access, visible(server.access));
    setText(this.source, visible(server.source));
    this.changes.hidden = server.changedTools.length === 0;
    this.changes.replaceChildren(...changes(server));
    this.act(server);
    this.list(server);
  }

  /** What came of what the user wanted. */
  tell(level: "info" | "error", text: string): void {
    for (const each of this.buttons.querySelectorAll("button")) each.disabled = false;
    this.note.hidden = text === "";
    this.note.className = `note ${level}`;
    setText(this.note, visible(text));
  }

  private act(server: McpServer): void {
    const { name, state, digest, toolsDigest, changedTools } = server;
    const focused = (document.activeElement as HTMLElement | null)?.dataset.wish;
    const had = this.buttons.contains(document.activeElement);
    const act = (label: string, wish: ToServersHost, primary = false) =>
      button(label, () => this.wish(wish), {
        class: primary ? "primary" : "",
        "data-wish": wish.type,
        "aria-label": `${label.replace("…", "")}: ${visible(name)}`,
      });
    const waits = state === "unapproved" || state === "off";
    this.buttons.replaceChildren(
      ...[
        waits && act(state === "off" ? "Turn on…" : "Approve…", { type: "approve", name, digest }, true),
        !waits &&
          changedTools.length > 0 &&
          act("Approve changed tools…", { type: "approveTools", name, digest: toolsDigest }, true),
        state === "needsSignIn" && act("Sign in", { type: "signIn", name }, true),
        AGREED.has(state) && act(state === "configured" ? "Start now" : "Restart", { type: "restart", name }),
        state !== "off" && act("Turn off", { type: "turnOff", name }),
        act("Logs", { type: "logs", name }),
      ].filter((each) => each !== false),
    );
    if (!had) return;
    const same = this.buttons.querySelector<HTMLElement>(`[data-wish="${focused}"]`);
    (same ?? this.buttons.querySelector("button"))?.focus();
  }

  private wish(wish: ToServersHost): void {
    for (const each of this.buttons.querySelectorAll("button")) each.disabled = true; // until it is answered
    this.note.hidden = true;
    this.post(wish);
  }

  private list({ tools }: McpServer): void {
    const { open } = this.tools;
    this.tools.hidden = tools.length === 0;
    this.tools.replaceChildren(
      h("summary", {}, plural(tools.length, "tool")),
      h("dl", {}, ...tools.flatMap(toolRow)),
    );
    this.tools.open = open;
  }
}

/** The daemon's first line without the name, which stands above, and the source, which stands below. */
function rest(line: string, { name, source }: McpServer): string {
  const words = line.startsWith(`${name}: `) ? line.slice(name.length + 2) : line;
  const end = ` · ${source}`;
  return visible(words.endsWith(end) ? words.slice(0, -end.length) : words);
}

function toolRow({ name, fullName, title, description, readOnly }: McpTool): HTMLElement[] {
  return [
    h(
      "dt",
      {},
      h("code", { title: fullName }, visible(name)),
      title !== "" && h("span", { class: "aside" }, ` ${visible(title)}`),
      readOnly && h("span", { class: "aside" }, " · says that it only reads"),
    ),
    h("dd", {}, visible(description)),
  ];
}

function changes({ changedTools }: McpServer): HTMLElement[] {
  if (changedTools.length === 0) return [];
  return [
    h("p", {}, `${plural(changedTools.length, "tool")} new or changed, off until you approve them:`),
    ...changedTools.map(({ name, diff }: McpChangedTool) =>
      h("figure", {}, h("figcaption", {}, h("code", {}, visible(name))), drawn(diff)),
    ),
  ];
}

const MARKS: Record<string, string> = { "+": "added", "-": "removed", "@": "more" };

function mark(line: string): string {
  return /^(---|\+\+\+) /.test(line) ? "more" : (MARKS[line[0] ?? ""] ?? "");
}

function drawn(diff: string): HTMLElement {
  const lines = visible(diff).replace(/\n$/, "").split("\n");
  return h(
    "pre",
    { class: "diff", tabindex: "0" },
    ...lines.map((line) => h("span", { class: mark(line) }, `${line}\n`)),
  );
}
