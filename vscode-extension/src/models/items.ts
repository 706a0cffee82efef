import { QuickPickItemKind, ThemeIcon, type QuickInputButton, type QuickPickItem } from "vscode";
import { advice } from "../daemon/advice";
import type { ModelInfo, ModelListResult } from "../protocol";
import { price, tokens } from "../sessions/words";

/** What the buttons of a row do. */
export const EFFORT: QuickInputButton = {
  iconPath: new ThemeIcon("dashboard"),
  tooltip: "Thinking Effort…",
};
export const DEFAULT: QuickInputButton = {
  iconPath: new ThemeIcon("star-empty"),
  tooltip: "Use as Default for New Sessions",
};
export const KEY: QuickInputButton = { iconPath: new ThemeIcon("key"), tooltip: "Set API Key…" };

const VERSIONS = new Intl.Collator("en", { numeric: true });

/** What stands in the way of a model, and the command that takes it away. */
export type Obstacle = "amanu.setKey" | "amanu.allowLocal";

export interface ModelItem extends QuickPickItem {
  model?: ModelInfo;
  obstacle?: Obstacle;
}

/** The models as rows: what is in use and the default on top, then those that can be used by vendor, then the others, each
 * with what it lacks. */
export function modelItems(
  { models, defaultModelId, vendors }: ModelListResult,
  current: string,
  effort: string | null,
): ModelItem[] {
  const inUse = current || defaultModelId;
  const row = (model: ModelInfo): ModelItem => {
    const marks = [
      model.modelId === inUse && (effort === null ? "in use" : `in use, ${effort} effort`),
      model.modelId === defaultModelId && "default",
    ].filter(Boolean);
    const obstacle = obstacleOf(model);
    return {
      label: model.name,
      description: [model.modelId, ...marks].join(" · "),
      detail: detail(model),
      iconPath: new ThemeIcon(icon(model, inUse)),
      buttons: model.available
        ? [
            ...(model.efforts.length > 0 ? [EFFORT] : []),
            ...(model.modelId === defaultModelId ? [] : [DEFAULT]),
          ]
        : obstacle === "amanu.setKey"
          ? [KEY]
          : [],
      model,
      ...(obstacle === undefined ? {} : { obstacle }),
    };
  };
  const top = models.filter(({ modelId }) => modelId === inUse || modelId === defaultModelId);
  const first = top.toSorted((a, b) => Number(b.modelId === inUse) - Number(a.modelId === inUse));
  const others = models.filter((model) => !top.includes(model));
  const title = (vendor: string) => vendors[vendor] ?? vendor;
  const groups = (chosen: ModelInfo[], suffix: string) =>
    [...new Set(chosen.map(vendorOf))].flatMap((vendor): ModelItem[] => [
      separator(`${title(vendor)}${suffix}`),
      ...newestFirst(chosen.filter((model) => vendorOf(model) === vendor)).map(row),
    ]);
  return [
    ...(first.length > 0 ? [separator("In use"), ...first.map(row)] : []),
    ...groups(
      others.filter(({ available }) => available),
      "",
    ),
    ...groups(
      others.filter(({ available }) => !available),
      " (not available)",
    ),
  ];
}

/** What the user should know of a model before choosing it: its window, its price and where that is from, or what it
 * lacks, and when it is shut down. */
export function detail(model: ModelInfo): string {
  const { available, unavailable, factsFrom, contextWindow } = model;
  const facts = available
    ? [`${tokens(contextWindow)} context`, price(model), factsFrom]
    : [advice(unavailable ?? "not available")];
  return [...facts, fate(model)].filter(Boolean).join(" · ");
}

/** Whether VS Code has the model from another extension. */
export function ofEditor({ modelId }: Pick<ModelInfo, "modelId">): boolean {
  return modelId.startsWith("vscode:");
}

/** The part of a model's id that names its vendor. */
export function vendorOf(model: Pick<ModelInfo, "modelId">): string {
  return model.modelId.slice(0, model.modelId.indexOf(ofEditor(model) ? "/" : ":"));
}

/** Of each family the newest first, the families in the vendor's order. */
function newestFirst(models: ModelInfo[]): ModelInfo[] {
  const family = ({ name }: ModelInfo) => name.replaceAll(/\d[\d.]*/g, "");
  const families = [...new Set(models.map(family))];
  const rank = (model: ModelInfo) => families.indexOf(family(model));
  return models.toSorted((a, b) => rank(a) - rank(b) || VERSIONS.compare(b.name, a.name));
}

function obstacleOf({ available, unavailable }: ModelInfo): Obstacle | undefined {
  if (available) return undefined;
  if (unavailable?.includes("amanu auth local")) return "amanu.allowLocal";
  return unavailable?.includes("amanu auth set") ? "amanu.setKey" : undefined;
}

function icon(model: ModelInfo, inUse: string | null): string {
  if (model.modelId === inUse) return "check";
  return model.available ? "sparkle" : "circle-slash";
}

function separator(label: string): ModelItem {
  return { label, kind: QuickPickItemKind.Separator };
}

function fate({ retires, successor }: ModelInfo): string {
  if (retires === null && successor === null) return "";
  return `${retires === null ? "deprecated" : `shut down on ${retires}`}${successor === null ? "" : `, use ${successor}`}`;
}
