import { randomUUID } from "node:crypto";
import type { Chat } from "./chat";
import type { Event } from "../protocol";
import { application, commandOf, editedFile } from "./code";
import { find } from "./files";
import type { ToHost } from "./messages";

type Block = Pick<Extract<ToHost, { type: "runCode" }>, "text" | "language">;

/** What the buttons of a code block have the daemon do: it is said in the conversation, as if the user had typed it. */
export class BlockActions {
  /** The prompts that apply blocks, and the turns they became: what these propose is shown when it is there. */
  private readonly prompts = new Set<string>();
  private readonly turns = new Set<string>();

  constructor(
    private readonly chat: Pick<Chat, "prompt" | "tell">,
    private readonly show: (proposalId: string, path: string) => Promise<void>,
  ) {}

  async run({ text, language }: Block): Promise<void> {
    const command = commandOf(text, language);
    if (command !== undefined) await this.chat.prompt(`! ${command}`, [], "queue");
    else
      this.chat.tell({
        level: "info",
        text: "These lines contain invisible characters, so they were not run. Copy them instead.",
      });
  }

  /** Have the code proposed as a change to the file it names, else to the one in the editor. */
  async apply({ text, language }: Block, path: string | null, folders: string[]): Promise<void> {
    const file = path === null ? editedFile(folders) : await find(path, folders);
    if (file !== undefined) {
      const promptId = randomUUID();
      this.prompts.add(promptId);
      await this.chat.prompt(application(file, folders, text, language), [], "queue", promptId);
    } else if (path === null)
      this.chat.tell({ level: "info", text: "Open the file that this code is for, then try again." });
  }

  async heard(event: Event): Promise<void> {
    if (event.kind === "turnStarted" && this.prompts.delete(event.promptId)) this.turns.add(event.turnId);
    if (event.kind === "turnEnded") this.turns.delete(event.turnId);
    if (event.kind !== "proposalChanged" || !this.turns.delete(event.proposal.turnId)) return;
    const { proposalId, files } = event.proposal;
    const [file] = files;
    if (file?.hunks.some((hunk) => hunk.waits === "decision")) await this.show(proposalId, file.path);
  }
}
