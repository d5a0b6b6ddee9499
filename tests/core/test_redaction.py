"""What leaves the PC names nobody."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from qwendesk.core.redaction import redact_paths, redact_user_paths

LINUX = ("/home/anna", "anna")
WINDOWS = (r"C:\Users\Anna Lena", "Anna Lena")
NAMES = st.from_regex(r"[a-zäöü][a-z0-9äöü]{1,11}(?:[-_.][a-z0-9]{1,5})?", fullmatch=True)
WORDS = st.lists(st.from_regex(r"[a-z]{1,9}", fullmatch=True), max_size=6).map(" ".join)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("There is no file /home/anna/models/x.gguf.", "There is no file x.gguf."),
        ("('/home/anna/loras/secret.gguf=0.5', '/b/y.gguf')", "('secret.gguf=0.5', 'y.gguf')"),
        ("in /mnt/Anna's games/of her/x y.gguf now", "in x y.gguf now"),
        ("at /home/anna/x.cpp:12", "at ~/x.cpp:12"),
        ("file:///home/anna/x", "file:~/x"),
        ("-I/home/anna/include", "-I/home/USER/include"),
        ("/home/annabel/x", "/home/USER/x"),
        ("/var/home/anna and /Users/anna.", "/var/home/USER and /Users/USER."),
        ("on /run/media/anna/Games or /media/anna.", "on /run/media/USER/Games or /media/USER."),
        ("/mnt/data/anna/x", "/mnt/data/USER/x"),
        ("anna likes/anna, and/or Anna", "anna likes/anna, and/or Anna"),
        ("https://huggingface.co/org/repo/x.gguf", "https://huggingface.co/org/repo/x.gguf"),
        ("GGML_ASSERT(a/b) in ggml/src/ggml.c:12", "GGML_ASSERT(a/b) in ggml/src/ggml.c:12"),
    ],
)
def test_user_is_redacted_on_linux_and_macos(text: str, told: str) -> None:
    assert redact_paths(text, *LINUX) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (r"no file C:\Users\Anna Lena\x.txt", r"no file ~\x.txt"),
        (r"no file c:\users\ANNA LENA\x.txt", r"no file ~\x.txt"),
        ("no file C:/Users/Anna Lena/x.txt", "no file ~/x.txt"),
        (r"('C:\\Users\\Anna Lena\\loras\\a.bin=1',)", r"('~\\loras\\a.bin=1',)"),
        (r"('C:\\Users\\Anna Lena\\loras\\a.gguf=1',)", "('a.gguf=1',)"),
        (r"D:\Anna Lena\games", r"D:\USER\games"),
        (r"D:\games\anna lena", r"D:\games\USER"),
        (r"C:\Users\ANNALE~1\AppData", r"C:\Users\USER\AppData"),
        (r"C:\Users\Bob\AppData", r"C:\Users\USER\AppData"),
        ("/c/Users/Anna Lena/x", "/c/Users/USER/x"),
        ("Anna Lena wrote this", "Anna Lena wrote this"),
    ],
)
def test_user_is_redacted_on_windows(text: str, told: str) -> None:
    assert redact_paths(text, *WINDOWS) == told


@given(
    user=NAMES,
    folder=st.sampled_from(["/home/", "/Users/", "/run/media/", "/media/", "C:\\Users\\", "D:\\"]),
    separator=st.sampled_from(["/", "\\", "\\\\"]),
    raised=st.booleans(),
    rest=st.lists(NAMES, max_size=3),
    words=st.tuples(WORDS, WORDS),
    quote=st.sampled_from(["", "'", '"', "("]),
)
def test_no_path_names_the_user(
    user: str, folder: str, separator: str, raised: bool, rest: list[str], words: tuple[str, str], quote: str
) -> None:
    home = f"C:\\Users\\{user}" if ":" in folder else f"/home/{user}"
    assume(user not in {"home", "users", "run", "media", "user", *rest})
    written = user.upper() if raised and ":" in folder and user.upper().lower() == user else user
    path = re.sub(r"[\\/]", lambda _: separator, "/".join([folder + written, *rest]))
    before, after = words
    told = redact_paths(f"{before} {quote}{path} {after}", home, user)
    assert user not in re.split(r"[\\/\s'\"(]+", told[len(before) : len(told) - len(after)].lower())
    assert told.startswith(before)
    assert told.endswith(after)


@given(user=NAMES, words=st.lists(NAMES | st.just("user"), max_size=8), home=st.sampled_from(["/home/", "C:\\Users\\"]))
def test_words_outside_paths_are_unchanged(user: str, words: list[str], home: str) -> None:
    text = " ".join([*words, user, "and/or", *words])
    assert redact_paths(text, home + user, user) == text


@given(text=st.text(st.sampled_from("/\\ :~'.=anhomeusrgf\n"), max_size=40))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    told = redact_paths(text, *LINUX)
    assert redact_paths(told, *LINUX) == told


def test_unknown_user_changes_nothing() -> None:
    assert redact_paths("a/b of /srv/x", "", "") == "a/b of /srv/x"


def test_current_user_is_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/somewhere/marmalade")
    monkeypatch.setenv("USERPROFILE", "/somewhere/marmalade")
    monkeypatch.setenv("LOGNAME", "marmalade-1729")
    told = redact_user_paths("/somewhere/marmalade/x, /media/marmalade-1729/y")
    assert told == "~/x, /media/USER/y"
