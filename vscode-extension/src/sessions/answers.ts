import type { Approval, ApprovalAnswer, ApprovalResolveParams, Grant, Scope } from "../protocol";

/** The message to the daemon for an answer, with what the user wrote for it. */
export function sent(
  { toolCallId, digest }: Pick<Approval, "toolCallId" | "digest">,
  { action, scope, rule, grants, mode, freshContext }: ApprovalAnswer,
  own: Partial<Pick<ApprovalResolveParams, "rule" | "reason" | "command">> = {},
): Omit<ApprovalResolveParams, "sessionId"> {
  const decision = action === "editCommand" ? "allow" : action;
  return { toolCallId, digest, decision, scope, rule: rule || null, grants, mode, freshContext, ...own };
}

/** The yes that counts so long and grants that; undefined where the daemon offers none. */
export function yes({ answers }: Approval, scope: Scope, grants: Grant[]): ApprovalAnswer | undefined {
  return answers.find(
    (each) => each.action === "allow" && each.scope === scope && strongest(each.grants) === strongest(grants),
  );
}

/** A command without the sandbox has the network, too. */
function strongest(grants: Grant[]): Grant | undefined {
  return (["unsandboxed", "network"] as const).find((grant) => grants.includes(grant));
}
