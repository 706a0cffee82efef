import { plural } from "../../review/changes";
import type { CommandPart } from "../../protocol";
import { visible } from "../../editor/visible";
import { h } from "./dom";
import { icon } from "./icon";

const MARKS: Record<CommandPart["decision"], [icon: string, name: string, word: string]> = {
  allow: ["check", "fine", "fine"],
  ask: ["question", "asks", "the reason for the question"],
  deny: ["close", "denied", "denied"],
};
/** Parts up to which those that are fine stand among the others; of more they are folded away. */
const MANY = 6;
/** Characters that are shown of a command: the whole line stands above. */
const LONG = 200;

/** Every command of a command line with what is thought of it; undefined when there is none. */
export function partsList(parts: CommandPart[], detail: string): HTMLElement | undefined {
  if (parts.length === 0) return undefined;
  const folded = parts.length > MANY ? parts.filter(({ decision }) => decision === "allow") : [];
  const open = parts.filter((part) => !folded.includes(part));
  const alone =
    parts.length === 1 && `${visible(detail)}\n`.startsWith(`${visible(parts[0]?.text ?? "").trim()}\n`);
  const list = (some: CommandPart[]) => h("ul", {}, ...some.map((part) => line(part, alone)));
  return h(
    "div",
    {
      class: "parts",
      role: "group",
      "aria-label": `What it consists of: ${plural(parts.length, "command")}`,
    },
    list(open),
    folded.length > 0 && h("details", {}, h("summary", {}, `${folded.length} more are fine`), list(folded)),
  );
}

/** `alone`: it is the whole command line, which stands above. */
function line({ text, decision, rule, reason }: CommandPart, alone: boolean): HTMLElement {
  const [mark, name, word] = MARKS[decision];
  return h(
    "li",
    { class: name },
    h("span", { class: "mark", title: word }, icon(mark, word)),
    h(
      "div",
      {},
      !alone && h("code", {}, shortened(visible(text))),
      h(
        "span",
        { class: "aside", title: rule === "" ? undefined : `Rule: ${visible(rule)}` },
        visible(reason),
      ),
    ),
  );
}

function shortened(text: string): string {
  return text.length <= LONG ? text : `${text.slice(0, LONG - 1)}…`;
}
