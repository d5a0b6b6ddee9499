"""The tool that searches the web with the service that the user chose."""

from qwendesk.core.app_options import AppOptions
from qwendesk.core.tool_context import CallContext
from qwendesk.core.translation import tr
from qwendesk.toolbox.tool import Arguments, ToolError
from qwendesk.toolbox.web.duckduckgo import DuckDuckGo
from qwendesk.toolbox.web.search_apis import BraveSearch, SearXng
from qwendesk.toolbox.web.search_service import MOST_QUERY_CHARACTERS, SearchService, shown_results


def chosen_service(options: AppOptions) -> SearchService:
    """Return the search service of the settings. Raise ToolError if none can be used."""
    if options.offline:
        raise ToolError("QwenDesk is set to offline, so nothing can be searched. The user can change that in Settings.")
    match options.search_service:
        case "brave":
            return BraveSearch(options.proxy)
        case "searxng":
            if not options.searxng_address:
                raise ToolError("The user has to enter the address of a SearXNG server in Settings first.")
            return SearXng(options.searxng_address, options.proxy)
        case "duckduckgo":
            return DuckDuckGo(options.proxy)


def preview(arguments: Arguments, service: SearchService) -> str:
    """Return what the user sees before consent. Raise ToolError for a search that can't be."""
    query = _query(arguments)
    return "\n".join((tr("Sends a search to {0} ({1}).", service.title, service.host), tr("Search: {0}", query)))


async def run(arguments: Arguments, context: CallContext, service: SearchService) -> str:
    """Search, and return what was found. Raise ToolError if nothing was, or if the user saw something else."""
    if context.confirmed != preview(arguments, service):
        raise ToolError("The user has chosen another search service meanwhile. Search again.")
    return shown_results(await service.search(_query(arguments)), service)


def _query(arguments: Arguments) -> str:
    """Return the query on one line, as it is shown and sent. Raise ToolError for one that is too short or long."""
    query = " ".join(str(arguments["query"]).split())
    if not query:
        raise ToolError("Give at least one word to search for.")
    if len(query) > MOST_QUERY_CHARACTERS:
        raise ToolError(f"A search has at most {MOST_QUERY_CHARACTERS} characters. Use fewer words.")
    return query
