"""Reads files and pictures into attachments of the composer, and has the engine count their tokens."""

import asyncio
import hashlib
import itertools
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from qwendesk.chat.chat_state import IncognitoImages
from qwendesk.chat.clip_parts import CLIP_SUFFIXES, clip_kind, is_animated
from qwendesk.chat.context_fill import ContextGauge
from qwendesk.chat.documents.document_reader import DOCUMENT_ENDINGS, LANGUAGE_OF, is_document, is_pdf, read_document
from qwendesk.chat.documents.pdf import draw_pages, parse_pages, pdf_facts, pdf_pictures, show_pages
from qwendesk.chat.image_parts import image_part
from qwendesk.chat.request import TokenCount, too_large_sentence
from qwendesk.chat.service import ChatService
from qwendesk.chat.view.composer.attachment_cards import AttachmentCard, DocumentCard, PictureCard
from qwendesk.chat.view.composer.clip_card import ClipCard
from qwendesk.chat.view.composer.clip_loader import ClipLoader
from qwendesk.chat.view.composer.composer import Composer
from qwendesk.chat.view.composer.pasted_content import PastedContent
from qwendesk.chat.view.thread.document_chip import DocumentViewer
from qwendesk.chat.view.thread.pictures.thumbnails import SUFFIXES, PreviewCache, store_image_data, store_pasted_image
from qwendesk.core.chats import DraftFile
from qwendesk.core.clips import ClipChoice
from qwendesk.core.errors import BadRequest
from qwendesk.core.input_files import open_regular
from qwendesk.core.json_decoding import whole_characters
from qwendesk.core.messages import DocumentPart, ImagePart
from qwendesk.core.paths import cache_folder, is_demo
from qwendesk.core.translation import join_sentences, tr, tr_n
from qwendesk.engine.protocol import LoadReport, PictureCost, RequestFailed
from qwendesk.widgets.display_texts import no_vision_text
from qwendesk.widgets.file_dialogs import ask_for_files
from qwendesk.widgets.tasks import window_tasks


class _NoVision(Exception):
    """The model can't see pictures."""


class _MessageReplaced(Exception):
    """Another chat was opened while a file was being read."""


class AttachmentLoader(QObject):
    """Reads attachments for a composer, which owns it."""

    folder_dropped = Signal(str)
    """Path of a folder in which the model is to read."""

    def __init__(self, composer: Composer, chat: ChatService, gauge: ContextGauge, previews: PreviewCache) -> None:
        super().__init__(composer)
        self._composer, self._chat, self._gauge, self._previews = composer, chat, gauge, previews
        self._tasks = window_tasks()
        self._report: LoadReport | None = None
        self._counted_with: LoadReport | None = None
        self._warning = ""
        self._message = object()
        self._clips = ClipLoader(composer.attachments, chat, previews)
        row = composer.attachments
        row.changed.connect(self._check_size)
        row.recount.connect(self._recount)
        row.reread.connect(self._read_again)
        row.unfolded.connect(self._insert)
        row.document_opened.connect(lambda part: DocumentViewer(part, composer.window()).open())
        composer.pasted.connect(self.attach)
        composer.attach_asked.connect(self.choose_files)

    @property
    def message(self) -> object:
        """Identity of the message being written; replaced when another chat is opened."""
        return self._message

    def begin_message(self) -> None:
        """Start another chat's message. Files that are still being read for the previous one won't be attached."""
        self._message = object()

    def show_report(self, report: LoadReport | None) -> None:
        """Count the attachments again with the loaded model; None if none is loaded."""
        self._report = report
        self._clips.show_report(report)
        if report is not None and report is not self._counted_with:
            self._counted_with = report
            self._composer.show_notice("")
            for card in self._composer.attachments.items:
                if isinstance(card, ClipCard) and not card.choice.n_frames:
                    self._clips.read_frames(card)  # its share of this context may be another one
                else:
                    self._recount(card)

    def attach(self, content: PastedContent) -> None:
        """Attach files and pictures that were dropped or pasted, and insert text into the message."""
        self._tasks.start(self._attach_content(content, self._message))

    def restore(self, files: Sequence[str | DraftFile]) -> None:
        """Attach the files of a saved draft that still exist."""
        self._tasks.start(self._attach_all(files, self._message, ask=False))

    def choose_files(self) -> None:
        pictures = " ".join(f"*.{suffix}" for suffix in SUFFIXES)
        clips = " ".join(f"*.{suffix}" for suffix in CLIP_SUFFIXES)
        documents = " ".join(f"*.{suffix}" for suffix in (*DOCUMENT_ENDINGS, *LANGUAGE_OF))
        filters = (
            tr("Pictures, clips and documents ({0})", f"{pictures} {clips} {documents}"),
            tr("Pictures ({0})", pictures),
            tr("Clips ({0})", clips),
            tr("All files (*)"),
        )

        def attach(files: Sequence[str]) -> None:
            self.attach(PastedContent(files=tuple(map(Path, files))))

        ask_for_files(self._composer, "composer.attach_dialog", tr("Attach files"), filters, attach)

    def refuses_pictures(self) -> bool:
        """Return True if the loaded model can't see pictures, and show a notice about it in the composer."""
        report = self._report
        if report is None or report.can_see:
            return False
        if report.served_by is not None:
            self._composer.show_notice(no_vision_text(report))
            return True
        self._composer.show_notice(
            tr("This model can't see pictures. Choose its vision file (mmproj) first."), ("mmproj",)
        )
        return True

    def may_be_too_large(self, text: str, n_attached: int) -> bool:
        """Return True if the message should be counted before it is sent."""
        report = self._report
        if report is None or report.served_by is not None:  # a server counts only what it answers
            return False
        turns = self._chat.conversation.turns
        used = turns[-1].answer.stats.total_tokens if turns else 0
        is_nearly_full = self._chat.options().context_overflow == "stop" and used > report.n_ctx * 3 // 4
        return n_attached > 0 or is_nearly_full or len(text) > report.n_ctx // 4

    async def count_if_too_large(
        self, text: str, pictures: Sequence[ImagePart], documents: Sequence[DocumentPart]
    ) -> TokenCount | None:
        """Return the tokens of a message that doesn't fit in the context; None if it fits."""
        count = await self._gauge.count_request(text, pictures, documents)
        return count if isinstance(count, TokenCount) and count.is_too_large else None

    async def _attach_content(self, content: PastedContent, message: object) -> None:
        if not content.has_files and not content.n_missing and not content.is_long:
            self._composer.text.insert_text(content)
            return
        files: list[str | DraftFile | ImagePart] = [str(path) for path in content.files]
        if content.is_long:
            files.append(self._folded(content.text))
        incognito_images = self._chat.active_incognito_images
        if content.image is not None:
            files.append(await asyncio.to_thread(store_pasted_image, content.image, incognito_images))
        files += await asyncio.to_thread(lambda: [store_image_data(data, incognito_images) for data in content.data])
        await self._attach_all(files, message, ask=True)
        if content.n_missing and not self._composer.notice:
            self._composer.show_notice(
                tr_n(
                    "{0} picture came without its content, so it wasn't attached. Copy the picture itself instead.",
                    "{0} pictures came without their content, so they weren't attached. Copy each picture by itself.",
                    content.n_missing,
                )
            )
        self._composer.text.setFocus()

    async def _attach_all(self, files: Sequence[str | DraftFile | ImagePart], message: object, *, ask: bool) -> None:
        problems: list[str] = []
        lacks_vision = False
        self._composer.show_notice(self._warning, ("length",) if self._warning else ())
        for file in files:
            try:
                if isinstance(file, ImagePart):
                    await self._attach_image(Path(file.path), file, message, ask=ask)
                else:
                    await self._attach(file if isinstance(file, DraftFile) else DraftFile(file), message, ask=ask)
            except _MessageReplaced:
                return
            except BadRequest as error:
                problems.append(error.sentence)
            except _NoVision:
                lacks_vision = True
        if lacks_vision:
            self.refuses_pictures()
        elif problems:
            # A folder that was refused has its sentence there already.
            self._composer.show_notice(join_sentences(self._composer.notice, *problems))
        elif ask and self._composer.attachments.documents and not self._composer.notice and self._is_demo:
            self._composer.show_notice(tr("The built-in demo can't read documents. A larger model can."), ("models",))

    @property
    def _is_demo(self) -> bool:
        return self._report is not None and is_demo(self._report.options.model)

    async def _attach(self, file: DraftFile, message: object, *, ask: bool) -> None:
        """Attach one file. Files of a draft (`ask` is False) need no dialog and are never refused."""
        path = Path(file.path)
        if file.text:
            self._add_document(file, DocumentPart(path.name, file.text), message)
            return
        if ask and await asyncio.to_thread(path.is_dir):
            if message is not self._message:
                raise _MessageReplaced
            self.folder_dropped.emit(str(path))
            return
        kind = await asyncio.to_thread(_kind_of, path)
        if kind == "animation":
            is_clip = await asyncio.to_thread(is_animated, path)
            kind = "clip" if is_clip else "picture"
        if kind == "clip":
            await self._attach_clip(path, file, message, ask=ask)
        elif kind == "picture":
            await self._attach_image(path, None, message, ask=ask, longest_side=file.longest_side)
        elif kind == "pdf":
            await self._attach_pdf(path, file, message, ask=ask)
        else:
            self._add_document(file, await asyncio.to_thread(read_document, path, (), file.encoding), message)

    async def _attach_image(
        self, path: Path, image: ImagePart | None, message: object, *, ask: bool, longest_side: int = 0
    ) -> None:
        """Attach an image. `image` is None for a file, which is then hashed."""
        report = self._report
        if ask and report is not None and not report.can_see:
            raise _NoVision
        picture = await self._previews.load_preview(path)
        if image is None:
            image = await asyncio.to_thread(image_part, path, longest_side)
        if message is not self._message:
            raise _MessageReplaced
        card = self._composer.attachments.add_picture(picture, image)
        if card is not None:
            self._recount(card)

    async def _attach_clip(self, path: Path, file: DraftFile, message: object, *, ask: bool) -> None:
        report = self._report
        if ask and report is not None and not report.can_see:
            raise _NoVision
        if message is not self._message:
            raise _MessageReplaced
        card = self._composer.attachments.add_clip(path, file.clip or ClipChoice())
        if card is not None and await self._clips.read_facts(card):
            self._clips.read_frames(card)

    async def _attach_pdf(self, path: Path, file: DraftFile, message: object, *, ask: bool) -> None:
        facts = await asyncio.to_thread(pdf_facts, path)
        if not ask:
            pages = parse_pages(file.pages, facts.pages) if file.pages else ()
            self._add_document(file, await asyncio.to_thread(read_document, path, pages), message)
            return
        report = self._report
        from qwendesk.chat.view.composer.pdf_sheet import PdfSheet  # noqa: PLC0415 - few attach a document in parts

        sheet = PdfSheet(path.name, facts, self._composer.window(), can_see=report is None or report.can_see)
        choice = await sheet.answer()
        if choice is None:
            return
        if choice.as_pictures:
            incognito_images = self._chat.active_incognito_images
            for page in await asyncio.to_thread(_page_images, path, choice.pages, incognito_images):
                await self._attach_image(Path(page.path), page, message, ask=False)
            return
        is_whole = len(choice.pages) == facts.pages
        document = await asyncio.to_thread(read_document, path, () if is_whole else choice.pages)
        self._add_document(DraftFile(file.path, pages="" if is_whole else show_pages(choice.pages)), document, message)

    def _folded(self, text: str) -> DraftFile:
        """Return a pasted text as an attachment, under a name that no other one has."""
        taken = [path.name for path in self._composer.attachments.paths]
        numbers = (f" {number}" if number > 1 else "" for number in itertools.count(1))
        name = next(name for number in numbers if (name := f"{tr('Pasted text')}{number}.txt") not in taken)
        return DraftFile(name, text=whole_characters(text.replace("\r\n", "\n").replace("\r", "\n")))

    def _insert(self, text: str) -> None:
        self._composer.text.insertPlainText(text)
        self._composer.text.setFocus()

    def _read_again(self, card: DocumentCard, encoding: str) -> None:
        async def read() -> None:
            try:
                document = await asyncio.to_thread(read_document, card.path, (), encoding)
            except BadRequest as error:
                self._composer.show_notice(error.sentence)
            else:
                file = DraftFile(card.file.path, encoding=encoding)
                self._composer.attachments.replace_document(card, file, document)

        self._tasks.start(read(), card)

    def _add_document(self, file: DraftFile, document: DocumentPart, message: object) -> None:
        if message is not self._message:
            raise _MessageReplaced
        if not document.text.strip():
            raise BadRequest(
                tr("No text"), tr("{0} contains no text. Attach its pages as pictures instead.", document.name)
            )
        card = self._composer.attachments.add_document(file, document)
        if card is not None:
            self._recount(card)

    def _recount(self, card: AttachmentCard) -> None:
        if self._report is not None:
            self._tasks.start(self._count(card), card)

    async def _count(self, card: AttachmentCard) -> None:
        report = self._report
        if report is None:
            return
        if isinstance(card, DocumentCard):
            document = card.document
            room = await self._gauge.count_document(document)
            if document is not card.document:
                return
            if isinstance(room, TokenCount) and room.is_estimate:
                card.accept_count(room.tokens, tr("Too large"))
            elif isinstance(room, TokenCount):
                card.show_count(room.tokens, room.n_ctx)
            elif isinstance(room, RequestFailed):
                self._show_uncounted(card, room)
        elif isinstance(card, ClipCard) and report.can_see and card.parts:
            await self._count_clip(card)
        elif isinstance(card, PictureCard) and report.can_see:
            side = card.longest_side
            try:
                cost = await self._gauge.count_picture(card.part)
            except BadRequest as error:
                card.refuse(error.title, error.sentence)
                return
            if side != card.longest_side:
                return
            if isinstance(cost, PictureCost):
                card.show_cost(cost, report.n_ctx)
            elif isinstance(cost, RequestFailed):
                self._show_uncounted(card, cost)
        self._check_size()

    async def _count_clip(self, card: ClipCard) -> None:
        parts = card.parts
        try:
            count = await self._gauge.count_frames(parts)
        except BadRequest as error:
            card.refuse(error.title, error.sentence)
            return
        if parts is not card.parts:
            return
        if isinstance(count, TokenCount):
            card.show_cost(count.tokens, count.n_ctx)
        elif isinstance(count, RequestFailed):
            self._show_uncounted(card, count)

    def _show_uncounted(self, card: AttachmentCard, failure: RequestFailed) -> None:
        """Refuse what the engine couldn't count. A server counts nothing before it answers, which is no refusal."""
        if self._report is not None and self._report.served_by is not None:
            card.show_uncounted(failure.sentence)
        else:
            card.refuse(failure.title, failure.sentence)

    def _check_size(self) -> None:
        """Warn if the attachments alone exceed the context; remove the warning once they don't."""
        report = self._report
        room = TokenCount(sum(card.tokens for card in self._composer.attachments.items), report.n_ctx if report else 0)
        if room.is_too_large:
            self._warning = too_large_sentence(room, report)
            can_lengthen = report is None or report.can_lengthen
            self._composer.show_notice(self._warning, ("length",) if can_lengthen else ())
        elif self._warning:
            if self._composer.notice == self._warning:
                self._composer.show_notice("")
            self._warning = ""


def _kind_of(path: Path) -> str:
    """Return "picture", "clip", "animation" for one that may be either, "pdf" or "text".

    Clips are known by their first bytes. Raises BadRequest for anything else. Blocks.
    """
    if path.is_dir():
        raise BadRequest(tr("This is a folder"), tr('"{0}" is a folder. Attach the files in it instead.', path.name))
    if kind := clip_kind(path):
        return kind
    if path.suffix.lower().lstrip(".") in SUFFIXES:
        return "picture"
    if is_pdf(path.name):
        return "pdf"
    if not path.exists():
        raise BadRequest(tr("File not found"), tr('"{0}" could not be found.', path.name))
    if is_document(path):
        return "text"
    sentence = tr(
        "“{0}” can't be attached. You can attach pictures, clips, PDF, Office documents, text and code files.",
        path.name,
    )
    raise BadRequest(tr("File type not supported"), sentence)


def _page_images(path: Path, pages: Sequence[int], incognito_images: IncognitoImages | None) -> tuple[ImagePart, ...]:
    """Return images of the pages, in the cache or in `incognito_images` if that is given. Blocks."""
    if incognito_images is not None:
        drawn = draw_pages(path, tuple(pages))
        return tuple(
            incognito_images.add(data, f"{path.stem}-{number}.png") for number, data in zip(pages, drawn, strict=True)
        )
    try:
        with open_regular(path) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BadRequest(tr("File can't be read"), tr("{0} can't be read: {1}.", path.name, error)) from error
    drawn_files = pdf_pictures(path, cache_folder() / "pages" / digest[:32], tuple(pages))
    return tuple(image_part(file) for file in drawn_files)
