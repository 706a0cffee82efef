import * as vscode from "vscode";
import { advice } from "../daemon/advice";
import type { KeySet } from "./auth";
import { run } from "../daemon/run";
import { env, type Setup } from "../daemon/setup";
import { capital } from "../sessions/words";

const VENDOR = "openai";
/** The prefix of the daemon's outcome line in a terminal. */
const PREFIX = `${VENDOR}: `;

/** Sign in with ChatGPT, so that requests count towards the user's plan: the daemon's program waits for the browser's
 * answer and stores it. Returns the outcome in words, or undefined if the user cancelled. Throws a sentence that says
 * what to do. */
export async function signIn(setup: Pick<Setup, "find" | "closed">): Promise<KeySet | undefined> {
  const command = program(setup);
  const progress = {
    location: vscode.ProgressLocation.Notification,
    title: "Waiting for you to sign in with ChatGPT in your browser",
    cancellable: true,
  };
  const { code, output, left } = await vscode.window.withProgress(progress, async (waiting, token) => {
    const cancelled = new AbortController();
    token.onCancellationRequested(() => cancelled.abort());
    // the address stands on a line of its own
    const line = (text: string) => {
      if (!/^https?:\S+$/.test(text)) return;
      void vscode.env.openExternal(vscode.Uri.parse(text, true));
      waiting.report({ message: `[Open the page again](${text})` }); // VS Code does not tell whether it opened
    };
    const signal = AbortSignal.any([cancelled.signal, setup.closed]);
    const ended = await run(command, ["auth", "login", VENDOR, "--no-browser"], { env: env(), signal, line });
    return { ...ended, left: signal.aborted };
  });
  if (left) return undefined;
  const lines = output.split("\n");
  if (code !== 0) throw failure(output, "The sign-in failed.");
  const start = lines.findIndex((line) => line.startsWith(PREFIX));
  const [signedIn = "", ...rest] = lines.slice(start);
  const then = rest.length > 0 ? rest.join(" ") : "Requests to OpenAI's models now count towards your plan.";
  return { words: `${sentence(signedIn)} ${then}`, vendor: VENDOR };
}

/** Remove the sign-in. Returns the outcome in words. Throws a sentence that says what to do. */
export async function signOut(setup: Pick<Setup, "find">): Promise<KeySet> {
  const { code, output } = await run(program(setup), ["auth", "logout", VENDOR], { env: env() });
  if (code !== 0) throw failure(output, "The sign-out failed.");
  return { words: sentence(output) };
}

/** The last thing the program said. */
function failure(output: string, otherwise: string): Error {
  return new Error(advice(output.split("\n").at(-1) || otherwise));
}

function program(setup: Pick<Setup, "find">): string {
  const daemon = setup.find();
  if (!("command" in daemon)) throw new Error("Install Amanu's daemon first: Amanu: Install the Daemon.");
  return daemon.command;
}

function sentence(line: string): string {
  return `${capital(line.replace(PREFIX, ""))}.`;
}
