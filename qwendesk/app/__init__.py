"""Start-up, shutdown, and the assembly of the main window.

Around the pages
----------------
Every command of the window stands once in `widgets/actions.py`; each feature installs its own, and menu, shortcuts
dialog and command palette are made from what is installed. `SingleInstance` hands the files of a second start to the
first, and `Application` those that the system opens; `app/window/file_opener.py` gives each file its place. `Tray`
hides the window instead of closing it, if that is wanted and there is a tray; `MainWindow.end` always ends. How things
look is one value, `Theme`, which belongs to the whole application: widgets ask `current_theme()` and follow
`app_theme().changed` (`widgets/theme_keeper.py`). It holds colours by role, sizes by text zoom, gaps by density
(`DensitySpacing` keeps a layout at it); what moves asks `Motion`. `widgets/tab_order.py` gives the Tab key the order in
which people read, `ComposerFocus` gives the focus back to the composer when an action elsewhere has ended, and
`Announcer` tells screen readers what happens away from the focus. `CrashReports` marks a running app, so that a mark
left behind is a crash. `help/app_updates.py` asks whether there is a newer QwenDesk, once a week like the catalog
(`core/weekly.py`); it doesn't exist as long as `qwendesk.RELEASES` has no address. `core/permissions.py` decides with
which mode a file or folder is created: 0600 and 0700 in the app's own folders, the umask's elsewhere; nothing else in
the package calls `mkdir` or opens a new file there. `core/links.py` is asked before a folder is deleted. Each service
is closed by the `Owner` that built it (`App` in `services.py`, for widgets `Parts` in `app/parts.py`), in reverse
order; all of them close even if one raises. "Delete everything" (`settings/deletion.py`) runs after that, whatever
happened; a note that it was asked for lies in the settings folder until everything is gone, so that the next start can
say what is left.

Texts of widgets pass through `tr` and `tr_n` (`core/translation.py`) and come from one JSON file a language in
`resources/i18n` (translating).

How the window opens
--------------------
`main.py` builds the services first (`App`), and has the engine chosen and the last model loaded while the window is
imported, on a thread. It shows the window, waits until it is drawn, and only then opens the chats, reads crash reports
and looks for models. What the system asks meanwhile waits: `SingleInstance.accept`, `Application.give_to`.

A page, a dialog and a service that few sessions use are imported in the function that builds them: the pages in
`Parts`, as a `LazyPage`, which builds its content when it is first shown or asked for, in steps between which the
window takes clicks, and the services as cached properties of `App`. Qt's own function for imports, which reads the
source of each module, is taken out (`use_plain_imports`). An icon is drawn when it is shown. `python -m bench.startup`
measures a start, and `python -m tools.code_shape --run` counts what is imported until the window is drawn.
"""
