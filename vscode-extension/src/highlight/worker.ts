import { parentPort, workerData } from "node:worker_threads";
import type { Painted, PaintRequest } from "../chat/messages";
import { Grammars } from "./grammars";
import { type ActiveTheme, loadTheme } from "./themes";
import { Tokenizer } from "./tokenizer";

/** What the thread is started with. */
export interface Start {
  /** Where the grammars are. */
  folder: string;
  theme: ActiveTheme;
}
/** Each request gets its answer. */
export type Request = PaintRequest & { id: number };
export type Reply = Painted & { id: number };

const { folder, theme } = workerData as Start;
const tokenizer = Tokenizer.make(loadTheme(theme), new Grammars(folder));

parentPort?.on("message", (request: Request) => void answer(request));

async function answer(request: Request): Promise<void> {
  const painted = (await tokenizer).paint(request);
  parentPort?.postMessage({ id: request.id, ...painted } satisfies Reply);
}
