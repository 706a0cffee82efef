import type { Mode, ModelInfo, Usage } from "../../protocol";
import { MODES, price } from "../../words";
import type { Desk } from "./desk";
import { h, setText } from "./dom";

/** Mode and model of the session, and what it has cost. */
export class Pickers {
  readonly mode = h("select", { class: "mode", "aria-label": "Mode" });
  readonly model = h("select", { class: "model", "aria-label": "Model" });
  readonly usage = h("div", { class: "usage" });
  private models: ModelInfo[] = [];
  private fallback: string | null = null;

  constructor(private readonly desk: Desk) {
    for (const [mode, [name, meaning]] of Object.entries(MODES))
      this.mode.append(h("option", { value: mode, title: meaning }, name));
    this.mode.addEventListener("change", () => desk.post({ type: "setMode", mode: this.mode.value as Mode }));
    this.model.addEventListener("change", () => desk.post({ type: "setModel", modelId: this.model.value }));
  }

  offer(models: ModelInfo[], fallback: string | null): void {
    this.models = models;
    this.fallback = fallback;
    this.model.replaceChildren();
    this.update();
  }

  update(): void {
    const { mode, modelId, usage } = this.desk.session.state;
    if (this.mode.value !== mode) this.mode.value = mode;
    this.mode.title = `Mode: ${MODES[mode]?.[1] ?? mode}`;
    const current = modelId || this.fallback || "";
    if (this.model.childElementCount === 0 || this.model.value !== current) this.drawModels(current);
    setText(this.usage, usage === null ? "" : usageText(usage));
    this.usage.title = usage === null ? "" : usageDetail(usage);
  }

  private drawModels(current: string): void {
    const known = this.models.some((model) => model.modelId === current);
    this.model.replaceChildren(
      ...(known ? [] : [h("option", { value: current }, current || "No model yet")]),
      ...this.models.map((model) =>
        h(
          "option",
          { value: model.modelId, disabled: !model.available, title: model.unavailable ?? price(model) },
          model.available ? model.name : `${model.name} (no key)`,
        ),
      ),
    );
    this.model.value = current;
    const model = this.models.find((each) => each.modelId === current);
    this.model.title = model ? `${model.modelId}: ${price(model)}` : "Model";
  }
}

/** In short: how full the context is, and the cost. */
export function usageText(usage: Usage): string {
  const share = usage.contextWindow > 0 ? Math.round((100 * usage.contextTokens) / usage.contextWindow) : 0;
  const cost =
    usage.costUsd === null ? "cost not known" : `$${usage.costUsd.toFixed(usage.costUsd < 1 ? 3 : 2)}`;
  return `${share} % · ${cost}`;
}

function usageDetail(usage: Usage): string {
  return [
    `context ${tokens(usage.contextTokens)} of ${tokens(usage.contextWindow)}`,
    `input ${tokens(usage.inputTokens)}`,
    `from the cache ${tokens(usage.cacheReadTokens)}`,
    `into the cache ${tokens(usage.cacheWriteTokens)}`,
    `output ${tokens(usage.outputTokens)}`,
    `thoughts ${tokens(usage.thoughtTokens)}`,
  ].join("\n");
}

export function tokens(count: number): string {
  if (count >= 1_000_000) return `${(count / 1_000_000).toFixed(1)} M`;
  return count >= 1000 ? `${Math.round(count / 1000)} k` : String(count);
}
