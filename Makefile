# Two commands do everything: `make run` and `make test`. Windows has run.cmd and test.cmd instead.

# auto, cpu, cuda, vulkan or metal: see README.md.
ENGINE ?= auto
# The bundle's engine for graphics cards: auto, yes or no.
VULKAN ?= auto
# The first Python here that the set-up takes; tools/setup says what is wrong if none is.
PYTHON ?= $(shell for p in python3 python3.15 python3.14 python3.13 python3.12 python3.11; do \
	$$p -m tools.setup --check-python 2>/dev/null && $$p -c 'import sys; print(sys.executable)' && exit; \
	done; echo python3)
VENV_PYTHON := .venv/bin/python
TOUR := .work/demo-tour.png

.DEFAULT_GOAL := help
.PHONY: help run test check bench soak clients format screenshot bundle bundle-test deb appimage clean environment environment-test \
	windows windows-test windows-bundle windows-bundle-test linux-test gpu-test gpu-soak

help:
	@echo "make run         open QwenDesk on its built-in demo model (the first time: environment and engine, minutes)"
	@echo "make test        everything CI runs: ruff, mypy, and pytest (the first time: adds what they need)"
	@echo "make check       the same with only the tests of what you changed"
	@echo "make bench       the timed measurements, with their targets"
	@echo "make soak        the long and random tests"
	@echo "make clients     Claude Code, Codex, opencode, Cline, Continue and libraries use the server (network, 2 GB)"
	@echo "make format      lay out the code and sort the imports"
	@echo "make screenshot  take the pictures of the guide and the README again"
	@echo "make bundle      the app as one folder in dist/, with its engines; make bundle-test tries it as a stranger would"
	@echo "make deb         the bundle as a Debian package; make appimage: as one file (docs/release.md says what it needs)"
	@echo "make windows     Wine, Windows Python and the engine for Windows in .windows (Linux, root, half an hour)"
	@echo "make windows-test  the tests by Windows Python there; PYTEST_ARGS=tests/hub chooses some"
	@echo "make windows-bundle  the portable zip and the installer for Windows in dist/; windows-bundle-test tries them"
	@echo "make linux-test  everything of make test on Debian 13, in a folder of its own (Linux, root)"
	@echo "make gpu-test    the Vulkan engine on Mesa's software driver there; make gpu-soak: llama.cpp's tests of its operators"
	@echo "make clean       remove the environment and the caches; engines that are built stay in .engine and .windows"
	@echo
	@echo "ENGINE=auto|cpu|cuda|vulkan|metal chooses the engine build, e.g. make run ENGINE=vulkan"
	@echo "VULKAN=auto|yes|no says whether the bundle has an engine for graphics cards; auto: if it can be built here"

environment:
	@"$(PYTHON)" -m tools.setup --for run --engine "$(ENGINE)"

environment-test:
	@"$(PYTHON)" -m tools.setup --for test --engine "$(ENGINE)"

run: environment
	@if [ "$$(uname -s)" = Linux ] && [ -z "$$DISPLAY$$WAYLAND_DISPLAY" ]; then \
		echo "There is no display here (DISPLAY and WAYLAND_DISPLAY are empty): the same app runs offscreen instead,"; \
		echo "through three questions, one for a tool and one about a picture."; \
		mkdir -p $(dir $(TOUR)); \
		QT_QPA_PLATFORM=offscreen $(VENV_PYTHON) -m qwendesk --demo-tour --screenshot $(TOUR); \
	else \
		$(VENV_PYTHON) -m qwendesk; \
	fi

test: environment-test
	@$(VENV_PYTHON) -m tools.check

check: environment-test
	@$(VENV_PYTHON) -m tools.check --changed

bench: environment-test
	@$(VENV_PYTHON) -m bench.engine
	@$(VENV_PYTHON) -m bench.why limit
	@$(VENV_PYTHON) -m bench.tool_results
	@$(VENV_PYTHON) -m bench.ui_responsive
	@$(VENV_PYTHON) -m bench.ui_markdown
	@$(VENV_PYTHON) -m bench.verify
	@$(VENV_PYTHON) -m bench.store
	@$(VENV_PYTHON) -m bench.startup
	@$(VENV_PYTHON) -m bench.idle

clients: environment-test
	@$(VENV_PYTHON) -m tools.clients $(CLIENTS)

soak: environment-test
	@$(VENV_PYTHON) -m tools.real_models || echo "The tests that need these models are skipped."
	@$(VENV_PYTHON) -m pytest -m soak --timeout 3600 -o faulthandler_timeout=4000
	@$(VENV_PYTHON) -m bench.why causes

format: environment-test
	@$(VENV_PYTHON) -m ruff check --fix-only --quiet .
	@$(VENV_PYTHON) -m ruff format .

screenshot: environment-test
	@$(VENV_PYTHON) -m tools.screenshots

bundle: environment-test
	@$(VENV_PYTHON) -m tools.bundle --vulkan "$(VULKAN)"

bundle-test: environment-test
	@$(VENV_PYTHON) -m tools.bundle.smoke

deb: environment-test
	@$(VENV_PYTHON) -m tools.bundle.deb

appimage: environment-test
	@$(VENV_PYTHON) -m tools.bundle.appimage

windows:
	@"$(PYTHON)" -m tools.windows setup

windows-test:
	@"$(PYTHON)" -m tools.windows test $(PYTEST_ARGS)

windows-bundle:
	@"$(PYTHON)" -m tools.windows bundle

windows-bundle-test:
	@"$(PYTHON)" -m tools.windows bundle-test

linux-test:
	@"$(PYTHON)" -m tools.linux_tests test $(PYTEST_ARGS)

gpu-test:
	@"$(PYTHON)" -m tools.linux_tests gpu $(PYTEST_ARGS)

gpu-soak:
	@"$(PYTHON)" -m tools.linux_tests soak

clean:
	rm -rf .venv .work .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.engine/*' -not -path './.windows/*' -prune -exec rm -rf {} +
