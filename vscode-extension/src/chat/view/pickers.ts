import { advice } from "../../daemon/advice";
import type { Mode, ModelInfo } from "../../protocol";
import { MODES } from "../../labels";
import { MODE_OF_PARENT, price } from "../../sessions/words";
import type { ChatView } from "./chatView";
import { button, h, setText } from "./dom";

/** Mode and model of the session. The model is chosen in VS Code's own list, which searches. */
export class Pickers {
  readonly mode = h("select", { class: "mode", "aria-label": "Mode" });
  readonly model = button("", () => this.view.post({ type: "action", action: "selectModel" }), {
    class: "model",
    "aria-haspopup": "dialog",
  });
  private models: ModelInfo[] = [];
  private fallback: string | null = null;

  constructor(private readonly view: ChatView) {
    for (const [mode, { name, meaning }] of Object.entries(MODES))
      this.mode.append(h("option", { value: mode, title: meaning }, name));
    this.mode.addEventListener("change", () => view.post({ type: "setMode", mode: this.mode.value as Mode }));
  }

  offer(models: ModelInfo[], fallback: string | null): void {
    this.models = models;
    this.fallback = fallback;
    this.update();
  }

  update(): void {
    const { mode, modelId, effort, serviceTier, atWork } = this.view.session.state;
    if (this.mode.value !== mode) this.mode.value = mode;
    this.mode.disabled = atWork;
    this.mode.title = `Mode: ${MODES[mode]?.meaning ?? mode}${atWork ? `. ${MODE_OF_PARENT}` : ""}`;
    const current = modelId || this.fallback || "";
    const model = this.models.find((each) => each.modelId === current);
    const name = current === "" ? "Select a model" : (model?.name ?? current);
    const tier = serviceTier === "standard" ? null : serviceTier;
    const text = [name, effort, tier].filter((each) => each !== null).join(" · ");
    setText(this.model, text);
    this.model.classList.toggle("lacking", model?.available === false);
    const facts = model?.unavailable == null ? model && price(model) : advice(model.unavailable);
    const thinks = effort === null ? "" : ` · thinking effort ${effort}`;
    const served = tier === null ? "" : ` · ${tier} tier, at another price (/fast)`;
    this.model.title = model ? `${model.modelId}: ${facts}${thinks}${served}` : "Model";
    this.model.setAttribute("aria-label", `Model: ${text}`);
  }

  /** How a user knows the model. */
  name(modelId: string): string {
    return this.models.find((model) => model.modelId === modelId)?.name ?? modelId;
  }
}
