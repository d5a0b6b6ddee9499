"""Joins the composer's attachments to the files they come from and to the engine that counts them."""

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QFileDialog

from qwendesk.core.chats import DraftFile
from qwendesk.core.errors import BadRequest
from qwendesk.core.messages import DocumentPart, ImagePart
from qwendesk.core.paths import cache_folder
from qwendesk.engine.protocol import PictureCost, RequestFailed
from qwendesk.services.chat.counting import Room
from qwendesk.services.chat.held import HeldPictures
from qwendesk.services.documents.languages import LANGUAGE_OF, PDF_ENDING, is_pdf
from qwendesk.services.documents.page_range import parse_pages, show_pages
from qwendesk.services.documents.pdf import draw_pages, pdf_facts, pdf_pictures
from qwendesk.services.documents.reading import is_document, read_document
from qwendesk.ui.bridges.chat import ChatBridge
from qwendesk.ui.bridges.engine import EngineBridge
from qwendesk.ui.composer.cards import Card, DocumentCard, PictureCard
from qwendesk.ui.composer.composer import Composer
from qwendesk.ui.composer.intake import Intake
from qwendesk.ui.composer.pdf_sheet import PdfSheet
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.thread.document_chip import DocumentViewer
from qwendesk.ui.thread.pictures import SUFFIXES, keep_data, keep_pasted
from qwendesk.ui.thread.thumbnails import PictureShelf


class _NoEyes(Exception):
    """A picture for a model that cannot see."""


class _Gone(Exception):
    """Another chat was opened while a file was read."""


class AttachingPart(QObject):
    """Lives as long as the composer."""

    def __init__(
        self,
        keeper: ThemeKeeper,
        composer: Composer,
        engine: EngineBridge,
        chat: ChatBridge,
        shelf: PictureShelf,
        tasks: Tasks,
    ) -> None:
        super().__init__(composer)
        self._keeper, self._composer, self._engine, self._chat = keeper, composer, engine, chat
        self._shelf, self._tasks = shelf, tasks
        self._measured_with: object = None
        self._warned = ""
        self._question = object()
        row = composer.attachments
        row.changed.connect(self._weigh)
        row.recount.connect(self._recount)
        row.document_opened.connect(lambda part: DocumentViewer(keeper, part, composer.window()).open())
        composer.pasted.connect(self.take)
        composer.attach_asked.connect(self.choose_files)
        engine.changed.connect(self._on_engine)

    @property
    def question(self) -> object:
        """Another one as soon as the composer belongs to another chat."""
        return self._question

    def forget(self) -> None:
        """The composer belongs to another chat now: what is still being read for the one before is left out."""
        self._question = object()

    def take(self, intake: Intake) -> None:
        """What was dropped or pasted: files and pictures are attached, text goes into the question."""
        self._tasks.start(self._take(intake, self._question))

    def restore(self, files: Sequence[str | DraftFile]) -> None:
        """What was attached before, as far as it is still there."""
        self._tasks.start(self._attach_all(files, self._question, ask=False))

    def choose_files(self) -> None:
        dialog = QFileDialog(self._composer, tr("Attach files"))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        pictures = " ".join(f"*.{suffix}" for suffix in SUFFIXES)
        documents = " ".join(f"*.{suffix}" for suffix in (PDF_ENDING, *LANGUAGE_OF))
        dialog.setNameFilters(
            [
                tr("Pictures and documents ({0})", f"{pictures} {documents}"),
                tr("Pictures ({0})", pictures),
                tr("All files (*)"),
            ]
        )
        dialog.filesSelected.connect(lambda files: self.take(Intake(files=tuple(Path(file) for file in files))))
        dialog.open()

    def refuses_pictures(self) -> bool:
        """True, and said so, when the loaded model cannot see."""
        report = self._engine.state.report
        if report is None or report.can_see:
            return False
        self._composer.say(tr("This model cannot see pictures until its mmproj file is chosen."), offer_mmproj=True)
        return True

    def may_be_too_large(self, text: str, n_attached: int) -> bool:
        """Whether a question is worth counting before it is sent."""
        report = self._engine.state.report
        return report is not None and (n_attached > 0 or len(text) > report.n_ctx // 4)

    async def refusal_of(self, text: str, pictures: Sequence[ImagePart], documents: Sequence[DocumentPart]) -> str:
        """Why this question cannot be sent, in a sentence that says what can be done; "" when it can."""
        room = await self._chat.question_cost(text, pictures, documents)
        return _too_large(room) if isinstance(room, Room) and room.is_too_large else ""

    async def _take(self, intake: Intake, question: object) -> None:
        if intake.is_web_picture:
            self._composer.say(
                tr("Only the address of a picture came, and nothing is fetched from the web. Copy the picture itself.")
            )
            return
        if not intake.has_files:
            self._composer.text.insertPlainText(intake.text)
            return
        files = list(intake.files)
        held = self._chat.held_only
        if intake.image is not None:
            files.append(await asyncio.to_thread(keep_pasted, intake.image, held))
        files += await asyncio.to_thread(lambda: [keep_data(data, held) for data in intake.data])
        await self._attach_all([str(path) for path in files], question, ask=True)
        self._composer.text.setFocus()

    async def _attach_all(self, files: Sequence[str | DraftFile], question: object, *, ask: bool) -> None:
        troubles: list[str] = []
        is_blind = False
        for file in files:
            try:
                await self._attach(file if isinstance(file, DraftFile) else DraftFile(file), question, ask=ask)
            except _Gone:
                return
            except BadRequest as error:
                troubles.append(error.sentence)
            except _NoEyes:
                is_blind = True
        if is_blind:
            self.refuses_pictures()
        elif troubles or not self._warned:
            self._composer.say(" ".join(troubles))

    async def _attach(self, file: DraftFile, question: object, *, ask: bool) -> None:
        """Of a draft nothing is asked and nothing refused: it is as it was left."""
        path = Path(file.path)
        kind = await asyncio.to_thread(_kind_of, path)
        if kind == "picture":
            report = self._engine.state.report
            if ask and report is not None and not report.can_see:
                raise _NoEyes
            await self._attach_picture(path, question, file.longest_side)
        elif kind == "pdf":
            await self._attach_pdf(path, file, question, ask=ask)
        else:
            self._add_document(path, await asyncio.to_thread(read_document, path), question)

    async def _attach_picture(self, path: Path, question: object, longest_side: int = 0) -> None:
        picture = await self._shelf.look_at(path)
        if question is not self._question:
            raise _Gone
        card = self._composer.attachments.add_picture(picture, longest_side)
        if card is not None:
            self._recount(card)

    async def _attach_pdf(self, path: Path, file: DraftFile, question: object, *, ask: bool) -> None:
        facts = await asyncio.to_thread(pdf_facts, path)
        if not ask:
            pages = parse_pages(file.pages, facts.pages) if file.pages else ()
            self._add_document(path, await asyncio.to_thread(read_document, path, pages), question, file.pages)
            return
        report = self._engine.state.report
        sheet = PdfSheet(
            self._keeper, path.name, facts, self._composer.window(), can_see=report is None or report.can_see
        )
        choice = await sheet.answer()
        if choice is None:
            return
        if choice.as_pictures:
            held = self._chat.held_only
            for page in await asyncio.to_thread(_drawn, path, choice.pages, held):
                await self._attach_picture(page, question)
            return
        is_whole = len(choice.pages) == facts.pages
        document = await asyncio.to_thread(read_document, path, () if is_whole else choice.pages)
        self._add_document(path, document, question, "" if is_whole else show_pages(choice.pages))

    def _add_document(self, path: Path, document: DocumentPart, question: object, pages: str = "") -> None:
        if question is not self._question:
            raise _Gone
        if not document.text.strip():
            raise BadRequest("No text", tr("There is no text in {0}. Attach its pages as pictures.", path.name))
        card = self._composer.attachments.add_document(path, document, pages)
        if card is not None:
            self._recount(card)

    def _recount(self, card: Card) -> None:
        if self._engine.state.report is not None:
            self._tasks.start(self._count(card), card)

    async def _count(self, card: Card) -> None:
        report = self._engine.state.report
        if report is None:
            return
        if isinstance(card, DocumentCard):
            room = await self._chat.document_cost(card.document)
            if isinstance(room, Room):
                card.show_count(room.tokens, room.n_ctx)
            elif isinstance(room, RequestFailed):
                card.refuse(room.title, room.sentence)
        elif isinstance(card, PictureCard) and report.can_see:
            side = card.longest_side
            try:
                cost = await self._chat.picture_cost(card.path, side)
            except BadRequest as error:
                card.refuse(error.title, error.sentence)
                return
            if side != card.longest_side:
                return
            if isinstance(cost, PictureCost):
                card.show_cost(cost, report.n_ctx)
            elif isinstance(cost, RequestFailed):
                card.refuse(cost.title, cost.sentence)
        self._weigh()

    def _weigh(self) -> None:
        """Says at once when the attachments alone are more than the context, and takes it back when they are not."""
        report = self._engine.state.report
        room = Room(sum(card.tokens for card in self._composer.attachments.items), report.n_ctx if report else 0)
        if room.is_too_large:
            self._warned = _too_large(room)
            self._composer.say(self._warned)
        elif self._warned:
            if self._composer.notice == self._warned:
                self._composer.say("")
            self._warned = ""

    def _on_engine(self) -> None:
        report = self._engine.state.report
        if report is not None and report is not self._measured_with:
            self._measured_with = report
            self._composer.say("")
            for card in self._composer.attachments.items:
                self._recount(card)


def _too_large(room: Room) -> str:
    return tr(
        "This fills {0} tokens, and the context holds {1}. Shorten it, attach fewer pages or smaller pictures, begin a "
        "new chat, or load the model with a longer context (Ctrl+L).",
        f"{room.tokens:,}",
        f"{room.n_ctx:,}",
    )


def _kind_of(path: Path) -> str:
    """ "picture", "pdf" or "text". Raises BadRequest for anything else; blocks."""
    if path.is_dir():
        raise BadRequest("A folder", tr('"{0}" is a folder. Attach the files in it instead.', path.name))
    if path.suffix.lower().lstrip(".") in SUFFIXES:
        return "picture"
    if is_pdf(path.name):
        return "pdf"
    if not path.exists():
        raise BadRequest("File not found", tr('"{0}" is not there any more.', path.name))
    if is_document(path):
        return "text"
    sentence = tr('"{0}" cannot be attached. PNG, JPEG, WebP, GIF, BMP, PDF, text and code can.', path.name)
    raise BadRequest("Unknown kind", sentence)


def _drawn(path: Path, pages: Sequence[int], held: HeldPictures | None) -> tuple[Path, ...]:
    """The pages as pictures in the cache, in a folder of this very file; or in memory, by `held`. Blocks."""
    if held is not None:
        drawn = draw_pages(path, tuple(pages))
        return tuple(held.hold(data, f"{path.stem}-{number}.png") for number, data in zip(pages, drawn, strict=True))
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BadRequest("File not readable", tr('"{0}" cannot be read: {1}', path.name, error)) from error
    return pdf_pictures(path, cache_folder() / "pages" / digest[:32], tuple(pages))
