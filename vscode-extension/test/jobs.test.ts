import { describe, expect, it } from "vitest";
import { JobTerminal } from "../src/sessions/jobs";
import type { Job, JobOutputResult } from "../src/protocol";

const JOB: Job = {
  jobId: "job-1",
  toolCallId: "c1",
  title: "npm run dev",
  state: "running",
  startedAt: 0,
  endedAt: null,
  exitCode: null,
  port: null,
  tty: false,
  lastLine: "",
  outputSize: 0,
  sandbox: null,
  summary: "Running",
  told: false,
  blob: null,
};

/** A terminal over an output that the test lets grow. */
function terminal(job: Job, missing = 0) {
  const made = { output: "", shown: "", typed: "", asked: 0, stopped: 0 };
  const pty = new JobTerminal(job, {
    output: async ({ offset = 0 }): Promise<JobOutputResult> => {
      made.asked += 1;
      const text = made.output.slice(offset, offset + 10);
      return { text, nextOffset: offset + text.length, missing: offset === 0 ? missing : 0 };
    },
    input: async (_, text) => {
      made.typed += text;
    },
    stop: async () => {
      made.stopped += 1;
    },
  });
  pty.onDidWrite((text) => (made.shown += text));
  return { pty, made };
}

describe("the terminal of a background command", () => {
  it("shows all there is, then what comes", async () => {
    const { pty, made } = terminal(JOB);
    made.output = "one\ntwo\r\nthree and more\n";
    pty.open();
    await pty.update(JOB);
    expect(made.shown).toBe("one\r\ntwo\r\nthree and more\r\n");
    made.output += "four\n";
    await Promise.all([pty.update(JOB), pty.update(JOB)]);
    expect(made.shown.endsWith("more\r\nfour\r\n")).toBe(true);
    await pty.update({ ...JOB, state: "ended", summary: "Exit code: 1, after 2.0 s" });
    await pty.update({ ...JOB, state: "ended", summary: "Exit code: 1, after 2.0 s" });
    expect(made.shown.endsWith("four\r\n\r\n[Exit code: 1, after 2.0 s]\r\n")).toBe(true);
  });

  it("says what is missing", async () => {
    const { pty, made } = terminal(JOB, 99);
    made.output = "end\n";
    pty.open();
    await pty.update(JOB);
    expect(made.shown).toBe("\r\n[… 99 bytes left out …]\r\nend\r\n");
  });

  it("asks nothing while it is closed", async () => {
    const { pty, made } = terminal(JOB);
    await pty.update(JOB);
    pty.open();
    await pty.update(JOB);
    const { asked } = made;
    pty.close();
    await pty.update(JOB);
    expect(asked).toBeGreaterThan(0);
    expect(made.asked).toBe(asked);
  });

  it.each([
    [true, "ls\r"],
    [false, ""],
  ])("with a terminal of its own (%s) it takes %j", async (tty, typed) => {
    const { pty, made } = terminal({ ...JOB, tty });
    pty.open();
    pty.handleInput("l");
    pty.handleInput("s\r");
    await new Promise((done) => setTimeout(done, 50));
    expect(made.typed).toBe(typed);
  });

  it("is stopped by Ctrl+C, unless that is for a terminal of its own", async () => {
    for (const [job, stopped] of [
      [JOB, 1],
      [{ ...JOB, tty: true }, 0],
      [{ ...JOB, state: "ended" as const }, 0],
    ] as const) {
      const { pty, made } = terminal(job);
      pty.open();
      pty.handleInput("\x03");
      expect(made.stopped).toBe(stopped);
    }
  });
});
