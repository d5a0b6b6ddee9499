"""How a model of the library is loaded: with its picture file, and with a repaired template where its own is broken."""

from qwendesk.core.options import LoadOptions
from qwendesk.hub.catalog import Catalog
from qwendesk.hub.library import LibraryModel
from qwendesk.hub.verify_use import is_broken_template
from qwendesk.services.models.templates import TemplatesService, base_repo_of


def load_options(model: LibraryModel, templates: TemplatesService, catalog: Catalog) -> LoadOptions:
    """Everything else is left to "auto". The repaired template is used only if it was fetched, and only if needed."""
    pictures = model.mmproj
    mmproj = pictures.path if pictures is not None and not pictures.problem else ""
    template = None
    if model.facts is not None and is_broken_template(model.facts.chat_template):
        template = templates.path(base_repo_of(model, catalog))
    return LoadOptions(model=model.path, mmproj=mmproj, chat_template_file=str(template or ""))
