"""What decisions rest on, played."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from amanu.core.rules import Rule
from amanu.permissions.policy import PolicyContext
from amanu_protocol.items import Proposal, Scope


@dataclass
class FakePolicy:
    """See `amanu.permissions.approvals.PolicySource`. Rules are remembered nowhere; `current` is any proposal now."""

    context: Callable[[], PolicyContext] = PolicyContext
    rules: Callable[[], Sequence[Rule]] = tuple
    current: Callable[[], Proposal | None] = lambda: None

    def rules_of_folders(self) -> Sequence[Rule]:
        return ()

    def rules_of_programs(self) -> Sequence[Rule]:
        return ()

    def remember(self, scope: Scope, rule: Rule) -> None: ...

    def proposal(self, proposal_id: str) -> Proposal | None:
        return self.current()
