import { chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, test, vi } from "vitest";

const opened: string[] = [];
const told: string[] = [];
let leave: (() => void) | undefined;
vi.mock("vscode", () => ({
  ProgressLocation: { Notification: 15 },
  Uri: { parse: (text: string) => text },
  env: { openExternal: async (address: string) => opened.push(address) },
  window: {
    withProgress: (_: unknown, work: (report: unknown, token: unknown) => unknown) =>
      work(
        { report: ({ message }: { message: string }) => told.push(message) },
        { onCancellationRequested: (heard: () => void) => (leave = heard) },
      ),
  },
}));
vi.mock("../src/daemon/setup", () => ({ env: () => ({ PATH: process.env.PATH }) }));
const { signIn, signOut } = await import("../src/models/signIn");

/** A daemon's program that does this. */
function amanu(script: string) {
  const command = join(mkdtempSync(join(tmpdir(), "amanu-")), "amanu");
  writeFileSync(command, `#!/bin/sh\n${script}\n`);
  chmodSync(command, 0o755);
  const find = () => ({ command, from: "storage" });
  return { find, closed: closing.signal } as unknown as Parameters<typeof signIn>[0];
}

let closing: AbortController;
beforeEach(() => {
  closing = new AbortController();
  opened.splice(0);
  told.splice(0);
});

const ADDRESS = "https://auth.openai.com/api/accounts/authorize?state=x";

test.each([
  ["", "Signed in as ada. Requests to OpenAI's models now count towards your plan."],
  ["echo 'X takes precedence: unset it.'", "Signed in as ada. X takes precedence: unset it."],
])("the page is opened, and what became of it is told: %s", async (also, words) => {
  const setup = amanu(
    `[ "$*" = "auth login openai --no-browser" ] || exit 9\necho; echo '${ADDRESS}'; echo 'openai: signed in as ada'; ${also}`,
  );
  expect(await signIn(setup)).toEqual({ words, vendor: "openai" });
  expect(opened).toEqual([ADDRESS]);
  expect(told).toEqual([`[Open the page again](${ADDRESS})`]);
});

test("what went wrong is told, with the command that VS Code has", async () => {
  const setup = amanu(`echo '${ADDRESS}'; echo 'You said no. Run: amanu auth login openai' >&2; exit 4`);
  await expect(signIn(setup)).rejects.toThrow("You said no. Use Amanu: Sign In with ChatGPT");
});

test.each([
  ["who cancels", () => leave?.()],
  ["who closes the window", () => closing.abort()],
])("%s ends the program", async (_, end) => {
  const signingIn = signIn(amanu(`echo '${ADDRESS}'; sleep 60`));
  await vi.waitFor(() => expect(opened).toEqual([ADDRESS]));
  end();
  expect(await signingIn).toBeUndefined();
});

test("without a daemon there is something to do first", async () => {
  const setup = { find: () => ({ failure: "x" }) } as unknown as Parameters<typeof signIn>[0];
  await expect(signIn(setup)).rejects.toThrow("Install the Daemon");
});

test("a program that cannot be started is told", async () => {
  const setup = amanu("exit 0");
  const find = () => ({ command: "/no/such/amanu", from: "storage" });
  await expect(signIn({ ...setup, find } as typeof setup)).rejects.toThrow("/no/such/amanu");
});

test("a sign-out that failed is told, with the command that VS Code has", async () => {
  const setup = amanu("echo 'It not writable; see `amanu logs`.' >&2; exit 4");
  await expect(signOut(setup)).rejects.toThrow("see Amanu: Show Logs.");
});

test("signing out", async () => {
  const setup = amanu(`[ "$*" = "auth logout openai" ] && echo 'openai: signed out on this machine'`);
  expect(await signOut(setup)).toEqual({ words: "Signed out on this machine." });
});
