"""What happens to files that are somebody else's."""

import json

import pytest

from qwendesk.server.setups.merging import NotMerged, as_text, merged
from qwendesk.server.setups.programs import BY_ID, Target

TARGET = Target("http://127.0.0.1:8765", "qd-0123456789abcdef", 65_536)
OPENCODE = BY_ID["opencode"].entries(TARGET)
CODEX = BY_ID["codex"].entries(TARGET)


def test_json_keeps_what_else_is_in_the_file_with_its_order_and_indentation() -> None:
    text = '{\n    "theme": "größer",\n    "provider": {\n        "other": {"name": "Other"}\n    },\n    "n": 1\n}\n'

    new = merged(text, OPENCODE, "json")

    document = json.loads(new)
    assert list(document) == ["theme", "provider", "n", "$schema"]
    assert document["theme"] == "größer"
    assert document["provider"]["other"] == {"name": "Other"}
    assert document["provider"]["qwendesk"]["options"]["apiKey"] == TARGET.key
    assert '\n    "theme": "größer"' in new
    assert new.endswith("}\n")
    assert merged(new, OPENCODE, "json") == new


def test_line_ends_of_windows_stay() -> None:
    new = merged('{\r\n  "theme": "dark"\r\n}\r\n', OPENCODE, "json")
    assert new.count("\n") == new.count("\r\n") > 5


def test_comments_and_order_stay_in_toml() -> None:
    text = (
        '# mine\nmodel = "old" # the old one\napproval = "never"\n\n[model_providers.other]\n# theirs\nname = "Other"\n'
    )

    new = merged(text, CODEX, "toml")

    for kept in ("# mine\n", "# the old one", 'approval = "never"', "[model_providers.other]\n# theirs"):
        assert kept in new
    assert 'model = "qwendesk"' in new
    assert "[model_providers.qwendesk]" in new
    assert merged(new, CODEX, "toml") == new


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{\n  // mine\n  "theme": "dark"\n}', "json"),
        ('{"a": 1, "a": 2}', "json"),
        ("[]", "json"),
        ('{"provider": ["x"]}', "json"),
        ("{" * 100_000, "json"),
        ("model = \n", "toml"),
        ('model_providers = "x"\n', "toml"),
        ("name: mine\n", "yaml"),
    ],
)
def test_what_would_lose_something_is_not_written(text: str, kind: str) -> None:
    entries = CODEX if kind == "toml" else OPENCODE
    with pytest.raises(NotMerged) as caught:
        merged(text, entries, kind)  # type: ignore[arg-type]
    assert caught.value.sentence.endswith(".")


def test_the_place_of_another_server_is_left_to_it() -> None:
    cline = BY_ID["cline"]
    other = '{"providers": {"openai-compatible": {"settings": {"baseUrl": "https://example.com"}}}}'
    with pytest.raises(NotMerged):
        merged(other, cline.entries(TARGET), "json", cline.slot)
    own = as_text(cline.entries(TARGET), "json")
    renewed = merged(own, cline.entries(Target(TARGET.address, "qd-new", 1024)), "json", cline.slot)
    assert "qd-new" in renewed
    assert TARGET.key not in renewed


def test_a_new_yaml_file_says_what_it_should() -> None:
    yaml = pytest.importorskip("yaml")
    entries = BY_ID["continue"].entries(TARGET)
    assert yaml.safe_load(as_text(entries, "yaml")) == entries
