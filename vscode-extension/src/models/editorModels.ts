import * as vscode from "vscode";
import { type Answers, type Daemon, text } from "../daemon/client";
import type {
  ModelRunParams,
  ModelRunResult,
  OfferedModel,
  RunCallPart,
  RunMessage,
  RunTextPart,
} from "../protocol";

/** Shown where VS Code asks whether Amanu may use a model. */
const JUSTIFICATION = "Amanu sends this model your prompts, and the code they are about.";

/** The models VS Code has from its other extensions, such as GitHub Copilot's: offered to the daemon, and asked for it. */
export class EditorModels implements vscode.Disposable {
  private chats: vscode.LanguageModelChat[] = [];
  /** What the daemon was told last, on this connection. */
  private offered = "[]";
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly daemon: Pick<Daemon, "request" | "notify" | "onConnection" | "connection">,
    /** The daemon has other models now. */
    private readonly changed: () => Promise<void>,
    private readonly log: Pick<vscode.LogOutputChannel, "warn">,
  ) {
    this.subscriptions = [
      vscode.lm.onDidChangeChatModels(() => this.offer()),
      daemon.onConnection(({ status }) => {
        this.offered = "[]";
        if (status === "ready") void this.offer();
      }),
    ];
  }

  /** Tell the daemon which models there are, if that has changed. */
  async offer(): Promise<void> {
    try {
      this.chats = await vscode.lm.selectChatModels();
      const models = this.chats.map(described);
      const offered = JSON.stringify(models);
      if (this.daemon.connection.status !== "ready" || offered === this.offered) return;
      this.offered = offered;
      await this.daemon.request("amanu/model/offer", { models });
      await this.changed();
    } catch (error) {
      this.log.warn(`the models of VS Code could not be offered: ${text(error)}`);
    }
  }

  /** Ask a model, and send the parts of its reply as they come. */
  readonly run: Answers["amanu/model/run"] = async (params, token) => {
    const chat = this.chats.find(({ vendor, id }) => vendor === params.vendor && id === params.id);
    if (chat === undefined) return { error: "notFound", message: "" };
    try {
      const { stream } = await chat.sendRequest(params.messages.map(message), options(params), token);
      for await (const chunk of stream) {
        const part = read(chunk);
        // one after the other: the answer must not overtake them
        if (part !== undefined) await this.daemon.notify("amanu/model/part", { runId: params.runId, part });
      }
      return { error: null, message: "" };
    } catch (error) {
      return failure(error);
    }
  };

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
  }
}

function described({ vendor, id, name, maxInputTokens }: vscode.LanguageModelChat): OfferedModel {
  return { vendor, vendorTitle: title(vendor), id, name: name || id, maxInputTokens };
}

/** What the extension that provides the models calls itself there; VS Code tells only the vendor's short name. */
function title(vendor: string): string {
  if (vendor === "copilot") return "GitHub Copilot"; // it says "Copilot", which means other things, too
  for (const { packageJSON } of vscode.extensions.all) {
    const { contributes } = packageJSON as {
      contributes?: { languageModelChatProviders?: { vendor?: string; displayName?: string }[] };
    };
    const found = contributes?.languageModelChatProviders?.find((provider) => provider.vendor === vendor);
    if (found?.displayName) return found.displayName;
  }
  return vendor;
}

function options({ tools }: ModelRunParams): vscode.LanguageModelChatRequestOptions {
  return {
    justification: JUSTIFICATION,
    tools: tools.map(({ name, description, parameters }) => ({ name, description, inputSchema: parameters })),
  };
}

function message({ role, parts }: RunMessage): vscode.LanguageModelChatMessage {
  const content = parts.map((part) => {
    switch (part.kind) {
      case "text":
        return new vscode.LanguageModelTextPart(part.text);
      case "image":
        return vscode.LanguageModelDataPart.image(Buffer.from(part.data, "base64"), part.mediaType);
      case "call":
        return new vscode.LanguageModelToolCallPart(part.callId, part.tool, part.arguments);
      case "result":
        return new vscode.LanguageModelToolResultPart(part.callId, [
          new vscode.LanguageModelTextPart(part.text),
        ]);
    }
  });
  const { User, Assistant } = vscode.LanguageModelChatMessageRole;
  return new vscode.LanguageModelChatMessage(role === "user" ? User : Assistant, content);
}

/** A part of the reply as the daemon has it; undefined for kinds that it does not know. */
function read(chunk: unknown): RunTextPart | RunCallPart | undefined {
  if (chunk instanceof vscode.LanguageModelTextPart) return { kind: "text", text: chunk.value };
  if (chunk instanceof vscode.LanguageModelToolCallPart)
    return {
      kind: "call",
      callId: chunk.callId,
      tool: chunk.name,
      arguments: { ...chunk.input },
    };
  return undefined;
}

const ERRORS: Record<string, ModelRunResult["error"]> = {
  NoPermissions: "notAllowed",
  Blocked: "blocked",
  NotFound: "notFound",
};

function failure(error: unknown): ModelRunResult {
  const code = error instanceof vscode.LanguageModelError ? error.code : "";
  const cause = error instanceof Error && error.cause instanceof Error ? ` ${error.cause.message}` : "";
  return { error: ERRORS[code] ?? "other", message: text(error) + cause };
}
