"""`make check` runs the tests of what was changed."""

from tools.check import tests_of as chosen


def test_the_tests_of_a_module_lie_in_the_folder_that_mirrors_its_own() -> None:
    found = chosen(["qwendesk/hub/library.py", "tools/check.py"])

    assert {"tests/hub/test_library.py", "tests/tools/test_check.py", "tests/test_import_rules.py"} <= set(found)
    assert not any(name.startswith("tests/chat") for name in found)


def test_a_changed_test_runs_and_a_deleted_one_does_not() -> None:
    found = chosen(["tests/chat/test_service.py", "tests/chat/test_that_is_gone.py", "tests/hub/hub_server.py"])

    assert "tests/chat/test_service.py" in found
    assert "tests/chat/test_that_is_gone.py" not in found
