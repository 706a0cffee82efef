import { advice } from "../../advice";
import type { Mode, ModelInfo } from "../../protocol";
import { MODES } from "../../labels";
import { price } from "../../words";
import type { Desk } from "./desk";
import { h } from "./dom";

/** More models than these are not drawn in a list: OpenRouter has hundreds, and *Select Model…* searches them. */
const MOST = 60;
const MORE = "more";

/** Mode and model of the session. */
export class Pickers {
  readonly mode = h("select", { class: "mode", "aria-label": "Mode" });
  readonly model = h("select", { class: "model", "aria-label": "Model" });
  private models: ModelInfo[] = [];
  private fallback: string | null = null;

  constructor(private readonly desk: Desk) {
    for (const [mode, { name, meaning }] of Object.entries(MODES))
      this.mode.append(h("option", { value: mode, title: meaning }, name));
    this.mode.addEventListener("change", () => desk.post({ type: "setMode", mode: this.mode.value as Mode }));
    this.model.addEventListener("change", () => {
      const modelId = this.model.value;
      if (modelId !== MORE) return desk.post({ type: "setModel", modelId });
      this.update();
      desk.post({ type: "action", action: "selectModel" });
    });
  }

  offer(models: ModelInfo[], fallback: string | null): void {
    this.models = models;
    this.fallback = fallback;
    this.model.replaceChildren();
    this.update();
  }

  update(): void {
    const { mode, modelId, effort } = this.desk.session.state;
    if (this.mode.value !== mode) this.mode.value = mode;
    this.mode.title = `Mode: ${MODES[mode]?.meaning ?? mode}`;
    const current = modelId || this.fallback || "";
    if (this.model.childElementCount === 0 || this.model.value !== current) this.drawModels(current);
    const model = this.models.find((each) => each.modelId === current);
    const thinks = effort === null ? "" : ` · thinking effort ${effort}`;
    this.model.title = model ? `${model.modelId}: ${price(model)}${thinks}` : "Model";
  }

  /** How a user knows the model. */
  name(modelId: string): string {
    return this.models.find((model) => model.modelId === modelId)?.name ?? modelId;
  }

  private drawModels(current: string): void {
    const known = this.models.some((model) => model.modelId === current);
    const drawn = this.models.filter(({ modelId }, at) => at < MOST || modelId === current);
    this.model.replaceChildren(
      ...(known ? [] : [h("option", { value: current }, current || "No model yet")]),
      ...drawn.map((model) =>
        h(
          "option",
          {
            value: model.modelId,
            disabled: !model.available,
            title: model.unavailable === null ? price(model) : advice(model.unavailable),
          },
          model.available ? model.name : `${model.name} (${lacks(model)})`,
        ),
      ),
      ...(drawn.length < this.models.length ? [h("option", { value: MORE }, "More models…")] : []),
    );
    this.model.value = current;
  }
}

/** What stands in the way of a model, in two words. */
function lacks({ unavailable }: ModelInfo): string {
  return unavailable?.includes("amanu auth local") ? "not allowed yet" : "no key";
}
