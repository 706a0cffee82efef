"""Searches the web, through the service of the session's model or one that the user has named."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from amanu.core.model import ModelError
from amanu.core.tool import CallContext, Outcome, Params, Preview, SearchAnswer, Subject, ToolError
from amanu.text.display import one_line
from amanu.text.fences import block
from amanu.tools.environment import SessionTool

_MAX_SOURCES = 20
_NO_SEARCH = (
    "The session's model has no web search. The user can name a service in config.toml: [web] search = "
    '"searxng", "brave" or "tavily".'
)


class WebSearchParams(Params):
    query: str = Field(min_length=2, max_length=400)


class WebSearch(SessionTool[WebSearchParams]):
    name = "web_search"
    effect = "read"
    description = "Searches the web and returns what was found, with numbered sources; read those with web_fetch."
    params = WebSearchParams

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        return f"Search the web for {arguments.get('query', '')}"

    async def preview(self, params: WebSearchParams, call: CallContext) -> Preview:
        masked = self._environment.secrets.mask_output(params.query)
        must_ask = "the query contains what looks like a secret" if masked != params.query else ""
        return Preview(
            title=f"Search the web for {params.query}",
            subject=Subject(self.name, self.effect, params.query, must_ask=must_ask),
            detail=params.query,
        )

    async def run(self, params: WebSearchParams, call: CallContext) -> Outcome:
        answer = await self._search(params.query, call)
        sources = list(answer.sources)[:_MAX_SOURCES]
        if not answer.text and not sources:
            return Outcome("Nothing was found.", "Nothing found")
        listed = [
            f"{number}. {one_line(source.title)} <{source.url}>" + (f"\n   {source.quote}" if source.quote else "")
            for number, source in enumerate(sources, 1)
        ]
        note = "" if sources else "(No source was given: this may be the searching model's own knowledge.)"
        text = "\n\n".join(filter(None, [answer.text, "\n".join(listed), note]))
        count = f"{len(sources)} source{'s' * (len(sources) != 1)}"
        return Outcome(block("web_search", text, params.query), count, sources=sources)

    async def _search(self, query: str, call: CallContext) -> SearchAnswer:
        """Raises `ToolError`."""
        try:
            if (service := self._environment.search_service) is not None:
                return await service.search(query)
            answer = await call.search_web(query) if call.search_web is not None else None
        except ModelError as error:
            raise ToolError(f"The search failed: {error}") from error
        if answer is None:
            raise ToolError(_NO_SEARCH)
        return answer
