import { TRUST } from "../../labels";
import type { QueuedPrompt, SessionState, TurnEnded } from "../../protocol";
import { advice } from "../../daemon/advice";
import { visible } from "../../editor/visible";
import { wanted } from "../../sessions/words";
import { type ChatView, makingRoom } from "./chatView";
import { button, h } from "./dom";
import { icon, iconButton } from "./icon";

/** Why a turn ended, where the daemon says no more of it. */
export const REASONS: Record<TurnEnded["reason"], string> = {
  completed: "",
  cancelled: "Stopped.",
  stepLimit: "Stopped: step limit reached.",
  timeLimit: "Stopped: time limit reached.",
  costLimit: "Stopped: cost limit reached.",
  loop: "Stopped: the model was going in circles.",
  refused: "The model declined.",
  hook: "Stopped by a hook.",
  failed: "The turn failed.",
  interrupted: "Interrupted: Amanu stopped during the turn.",
};

/** Between conversation and prompt box: what runs, what waits, why the last turn ended, and when it is tried again. */
export class StatusLines {
  readonly element = h("div", { class: "standing" });
  private timer: ReturnType<typeof setInterval> | undefined;
  private drawn = "";

  constructor(
    private readonly view: ChatView,
    private readonly goTo: (itemId: string) => void,
    private readonly giveBack: (prompt: QueuedPrompt) => void,
    private readonly modelName: (modelId: string) => string,
  ) {}

  update(): void {
    const state = this.view.session.state;
    const { retry, approvals, questions, turn, lastTurn, queue, trusted, trustChanged } = state;
    const asked = [...approvals, ...questions].map(({ title }) => title);
    const key = JSON.stringify([
      [state.sessionId, state.modelId, makingRoom(state), retry, asked, approvals[0]?.toolCallId],
      [turn, lastTurn, queue, trusted, trustChanged],
    ]);
    if (key === this.drawn) return; // a button that is drawn anew loses the focus
    this.drawn = key;
    clearInterval(this.timer);
    this.timer = undefined;
    const lines: HTMLElement[] = [];
    if (state.retry !== null) {
      const { at, attempt, reason } = state.retry;
      const text = h("span", {});
      const line = h("div", { class: "line warning" }, icon("warning"), text);
      const tick = () => {
        const seconds = Math.max(0, Math.ceil((at - Date.now()) / 1000));
        text.textContent = `${reason} Attempt ${attempt} ${seconds > 0 ? `in ${seconds} s` : "now"}.`;
      };
      tick();
      this.timer = setInterval(tick, 500);
      lines.push(line);
    }
    const count = state.approvals.length + state.questions.length;
    const [approval] = state.approvals;
    const [question] = state.questions;
    const waiting =
      approval !== undefined
        ? { title: wanted(approval), itemId: approval.toolCallId }
        : question && {
            title: wanted({ agent: question.agentId ? question.asker : "", title: question.title }),
            itemId: question.itemId,
          };
    if (waiting !== undefined)
      lines.push(
        h(
          "div",
          { class: "line waiting" },
          h("span", { class: "dot" }),
          h(
            "span",
            {},
            `${count > 1 ? `${count} decisions pending` : "Waiting for you"}: ${visible(waiting.title)}`,
          ),
          button("Show", () => this.goTo(waiting.itemId), { class: "link" }),
        ),
      );
    else if (state.turn !== null)
      lines.push(
        h(
          "div",
          { class: "line running" },
          h("span", { class: "dot" }),
          h(
            "span",
            {},
            makingRoom(state) ? "Compacting the conversation" : `Working · step ${state.turn.steps + 1}`,
          ),
          this.routed(state),
        ),
      );
    else if (state.lastTurn !== null && state.lastTurn.reason !== "completed") {
      const { reason, message, canContinue } = state.lastTurn;
      lines.push(
        h(
          "div",
          { class: `line ${reason === "cancelled" ? "" : "warning"}` },
          reason !== "cancelled" && icon("warning"),
          // a failure stands in the conversation already, in full
          h(
            "span",
            {},
            reason === "failed" ? REASONS.failed : advice(message ?? "") || REASONS[reason] || reason,
          ),
          canContinue &&
            state.queue.length === 0 && // what waits would go first
            button(
              "Continue",
              () => this.view.post({ type: "prompt", text: "Go on.", attachments: [], how: "send" }),
              { class: "link" },
            ),
        ),
      );
    }
    for (const [index, prompt] of state.queue.entries())
      lines.push(
        h(
          "div",
          { class: "line queued" },
          h("span", { class: "aside" }, "Queued:"),
          h("span", { class: "text" }, prompt.text),
          state.turn === null &&
            index === 0 &&
            button("Send now", () => this.sendNow(prompt), {
              class: "link",
              title: "The other queued prompts follow",
            }),
          iconButton("close", `Move back to the prompt box: ${prompt.text}`, () => this.takeBack(prompt), {
            title: "Move back to the prompt box",
          }),
        ),
      );
    if ((!state.trusted || state.trustChanged) && state.sessionId !== "")
      lines.push(this.untrusted(state.trustChanged));
    this.element.replaceChildren(...lines);
  }

  /** What is off, and the way to look at it. */
  private untrusted(changed: boolean): HTMLElement {
    return h(
      "div",
      { class: `line trust ${changed ? "warning" : "aside"}` },
      changed && icon("warning"),
      h("span", {}, TRUST[changed ? "changed" : "untrusted"]),
      button("Review…", () => this.view.post({ type: "action", action: "trust" }), {
        class: "link",
        title: "What the folder enables, and what has changed",
      }),
    );
  }

  /** The model that works, when it is not the session's, and why. */
  private routed({ turn, modelId }: SessionState): HTMLElement | undefined {
    if (turn === null || (turn.routed === null && turn.modelId === modelId)) return undefined;
    const name = this.modelName(turn.modelId);
    return h(
      "span",
      { class: "routed", title: turn.routed ?? turn.modelId },
      turn.routed === null ? name : `${name}: ${turn.routed}`,
    );
  }

  /** Back into the prompt box. */
  private takeBack(prompt: QueuedPrompt): void {
    this.view.post({ type: "unqueue", promptId: prompt.promptId });
    this.giveBack(prompt);
  }

  /** Sent again by its id, it starts. */
  private sendNow({ promptId, text }: QueuedPrompt): void {
    this.view.post({ type: "prompt", text, attachments: [], how: "send", promptId });
  }
}
