import type {
  ActiveEditor,
  AttachmentInput,
  Command,
  EditScope,
  Event,
  Grant,
  HunkDecision,
  Item,
  MentionCompleteResult,
  Mode,
  ModelInfo,
  RowDecision,
  RulePreviewResult,
  Scope,
  SeenProposal,
  SessionState,
  SessionSummary,
} from "../protocol";

/** What stands between the view and a conversation; `actions` are commands of the extension the view may ask for. */
export interface Hindrance {
  text: string;
  actions: Action[];
  /** What the buttons say that have no words of their own (view/actions.ts). */
  labels?: Partial<Record<Action, string>>;
}

/** The things beside a conversation that the view can ask for, by name: never a command id of its own making. */
export type Action =
  | "setKey"
  | "signIn"
  | "editorModel"
  | "logs"
  | "restart"
  | "openFolder"
  | "serverPath"
  | "settings"
  | "selectModel"
  | "selectEffort"
  | "selectMode"
  | "new"
  | "sessions"
  | "stop"
  | "context"
  | "compact"
  | "diff"
  | "install"
  | "doctor"
  | "tour"
  | "start"
  | "trust"
  | "mcp"
  | "answer";

/** What is wanted of a turn's edits; `restore`: go back to before it. */
export type TurnWish = "review" | "undo" | "redo" | "restore";

/** How a prompt is meant while a turn runs. */
export type How = "send" | "steer" | "queue";

export type ToView =
  /** The whole session, or a blank one that has not begun (`sessionId` is ""). `client` is our own name, `remember`
   * the session that this chat comes back to. */
  | { type: "session"; state: SessionState; seq: number; client: string; remember: string }
  | { type: "events"; events: Event[]; seq: number }
  | { type: "earlier"; items: Item[]; hasEarlier: boolean }
  | { type: "models"; models: ModelInfo[]; defaultModelId: string | null }
  | { type: "sessions"; sessions: SessionSummary[]; current: string }
  | { type: "showSessions" }
  | { type: "showContext" }
  | ({ type: "mentions"; text: string } & MentionCompleteResult)
  | { type: "commands"; commands: Command[] }
  /** The file before the user, and whether it goes along with what they say. */
  | { type: "looking"; active: ActiveEditor; shared: boolean }
  /** A picture of the conversation, as a `data:` address; "" when it cannot be had. */
  | { type: "picture"; blobId: string; source: string }
  /** A picture of the workspace, as a `data:` address; "" where there is none. */
  | { type: "workspacePicture"; path: string; source: string }
  /** Those of the paths that the workspace has. */
  | { type: "namedFiles"; paths: string[]; found: string[] }
  | { type: "attach"; attachment: AttachmentInput }
  /** A picture's file, base64: the view makes it small enough. */
  | { type: "attachPicture"; name: string; mediaType: string; data: string }
  | { type: "hindrance"; hindrance: Hindrance | null }
  /** Something to say that is no part of the conversation; `toolCallId` is the card it belongs to. */
  | {
      type: "notification";
      level: "info" | "warning" | "error";
      text: string;
      toolCallId: string | null;
      actions: Action[];
    }
  /** A prompt that was refused, or taken back: into the box again. */
  | { type: "giveBack"; text: string; attachments: AttachmentInput[]; replaces?: string }
  /** An earlier prompt, to be edited: what is sent then replaces that turn and all after it. */
  | { type: "edit"; text: string; attachments: AttachmentInput[]; replaces: string }
  /** What there is to begin with: the file before the user, its problems, files that git sees changed. */
  | { type: "starters"; file: string | null; problems: number; changes: number }
  /** What a rule, as edited for that question, would allow. */
  | ({ type: "rule"; toolCallId: string; rule: string } & RulePreviewResult)
  | { type: "focus" }
  | { type: "draft"; text: string }
  | ({ type: "painted"; request: number } & Painted)
  /** For a screen reader; nothing is shown. */
  | { type: "announce"; text: string }
  /** Another theme: ask for all colours again. */
  | { type: "repaint" };

/** The colours of lines of code: of each line, length and style of its parts in turn. No lines: ask from the first one
 * on. `tokens` is null where there are none to be had. */
export interface Painted {
  tokens: number[][] | null;
  /** As declarations of CSS, by number. */
  styles: string[];
}

/** Lines of a block of code, to be coloured. */
export interface PaintRequest {
  block: string;
  language: string;
  /** The number of the first line. */
  start: number;
  lines: string[];
}

/** The hunks of a file of a proposal, or a row, in the version the user saw. */
export interface SeenFile extends SeenProposal {
  path: string;
  rowId?: string;
}

export type ToHost =
  | { type: "ready" }
  | { type: "drawn"; seq: number }
  /** `replaces`: the turn that is taken back first, with all after it. `promptId`: a queued prompt, which starts. */
  | {
      type: "prompt";
      text: string;
      attachments: AttachmentInput[];
      how: How;
      replaces?: string;
      promptId?: string;
    }
  /** Lay that message into the prompt box, to be edited and sent in its place. */
  | { type: "edit"; itemId: string }
  /** Send the prompt of that turn again, in its place; with `modelId`, to that model from now on. */
  | { type: "retry"; turnId: string; modelId?: string }
  | { type: "unqueue"; promptId: string }
  | { type: "stop" }
  | { type: "stopAgent"; agentId: string }
  | {
      type: "resolve";
      toolCallId: string;
      decision: "allow" | "reject" | "finish";
      scope: Scope;
      rule: string | null;
      reason: string | null;
      /** Of the question the user saw. */
      digest: string;
      grants: Grant[];
      /** With a yes to a command: the user's own line. */
      command?: string;
      /** With a yes to a plan. */
      mode?: Mode | null;
      freshContext?: boolean;
    }
  | { type: "openPlan"; toolCallId: string }
  | {
      type: "answer";
      questionId: string;
      outcome: "answered" | "declined";
      /** By field. */
      answers: { [fieldId: string]: unknown };
      note: string;
    }
  | { type: "hunks"; proposalId: string; version: number; hunks: HunkDecision[]; rows: RowDecision[] }
  | {
      type: "decide";
      scope: EditScope;
      decision: "accept" | "reject" | "keep" | "redo";
      seen: SeenProposal[];
    }
  /** All that waits in those files, of the proposals as they were seen: of what is proposed, of what is applied, or both. */
  | { type: "settle"; files: SeenFile[]; yes: boolean; only: "decision" | "review" | null }
  | { type: "undo"; scope: EditScope }
  | { type: "retryChange"; version: number; scope: EditScope }
  | { type: "setReview"; proposalId: string; version: number; review: "before" | "after" }
  | { type: "turn"; what: TurnWish; turnId: string }
  /** `rowId`: the row at the path is meant, and not the file. */
  | { type: "openDiff"; proposalId: string; path: string; rowId?: string }
  | { type: "openFile"; path: string; line: number | null }
  | { type: "setMode"; mode: Mode }
  | { type: "checkRule"; toolCallId: string; rule: string }
  /** What a command prints, in a terminal tab. */
  | { type: "showCommand"; toolCallId: string }
  /** What the audit log knows of a call. */
  | { type: "audit"; toolCallId: string; title: string }
  | { type: "sessions" }
  | { type: "open"; sessionId: string }
  | { type: "openInEditor"; sessionId: string }
  | { type: "rename"; sessionId: string; title: string }
  | { type: "delete"; sessionId: string; title: string }
  | { type: "new" }
  | { type: "mentions"; text: string }
  | { type: "commands" }
  | { type: "share"; shared: boolean }
  | { type: "picture"; blobId: string; mediaType: string }
  /** A picture of the workspace that an answer shows. */
  | { type: "workspacePicture"; path: string }
  /** Paths that an answer names: which are there? */
  | { type: "namedFiles"; paths: string[] }
  /** Files dragged into the view, as URIs. */
  | { type: "dropped"; uris: string[] }
  | { type: "pickFiles" }
  | ({ type: "paint"; request: number } & PaintRequest)
  /** Code of an answer, at the cursor of the editor. */
  | { type: "insertCode"; text: string }
  /** Code of an answer as a proposed change to that file, else to the one in the editor. */
  | { type: "applyCode"; text: string; language: string; path: string | null }
  /** Code of an answer as a command of the session, decided on like the model's. */
  | { type: "runCode"; text: string; language: string }
  /** A command of an answer, into the terminal: the user runs it, or does not. */
  | { type: "terminal"; text: string; language: string }
  /** Something went wrong in the view that the user should know. */
  | { type: "say"; text: string }
  /** The user has gone to this chat. */
  | { type: "focused" }
  | { type: "blurred" }
  /** The text in the prompt box, for a window that is loaded anew. */
  | { type: "draft"; text: string }
  | { type: "earlier" }
  | { type: "action"; action: Action };
