import type { RuleAddParams, RuleRemoveParams, Setting, StoredRule } from "../protocol";

/** Pages and commands the settings page leads to. */
export type Elsewhere = "keys" | "mcp" | "restart";

export type ToSettingsPage =
  /** Everything as it is now. `path`: the user's `config.toml`. */
  | { type: "settings"; path: string; settings: Setting[]; rules: StoredRule[] }
  /** The file cannot be read: why. */
  | { type: "unreadable"; text: string }
  /** What came of a wish about a setting, or about rules (`rules`). */
  | { type: "told"; about: string; level: "info" | "error"; text: string }
  /** What a rule that is being written would mean. */
  | { type: "preview"; rule: string; valid: boolean; text: string };

export type ToSettingsHost =
  | { type: "ready" }
  /** Null: back to the default. */
  | { type: "set"; key: string; value: unknown }
  /** Choose a model for that key. */
  | { type: "choose"; key: string }
  | { type: "open"; line: number | null }
  | ({ type: "addRule" } & RuleAddParams)
  | ({ type: "removeRule" } & RuleRemoveParams)
  | ({ type: "preview" } & RuleAddParams)
  | { type: "go"; to: Elsewhere };
