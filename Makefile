# Every target installs what it needs. `make demo` and `make test` are all a newcomer needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help demo serve test docs test-ray soak chaos chaos-long check format pacs figures leaderboard wheel benchmark clean

help:
	@echo "make demo       adapt a classifier to a shifted stream; ends with a table and a report"
	@echo "make serve      start a live service on digits, to watch and teach in the browser"
	@echo "make test       run the test suite"
	@echo "make test-ray   run suites and a service on two Ray nodes, one of which is killed"
	@echo "make soak       simulate an hour of a live service (takes a few minutes)"
	@echo "make docs       build the documentation site into site/"
	@echo "make chaos      kill, lock and attack a live service (a few minutes; make chaos-long: 400 kills)"
	@echo "make check      check style, types, import rules and the documentation site"
	@echo "make format     format the code and wrap the texts"
	@echo "make benchmark  measure time and memory of SimATTA (on PACS if present), Tent and start-up"
	@echo "make pacs       train a source model on PACS and adapt it (hours on a small machine)"
	@echo "make figures    repeat the paper's validation experiments on digits (a few minutes)"
	@echo "make leaderboard  run all methods on digits, PACS, a table and texts, and write docs/leaderboard.md (hours)"
	@echo "make wheel      build wheel and sdist into dist/, check them, and run the demo from the wheel"

demo: $(VENV)/.run
	$(BIN)/attakit demo

serve: $(VENV)/.serve
	$(BIN)/attakit serve --demo

test: $(VENV)/.dev
	@sh tests/get_chromium.sh $(BIN)/python
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m alone tests/service
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -rs -m "not ray and not alone"

test-ray: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m ray tests/bench tests/service/test_ray_service.py

soak: $(VENV)/.dev
	$(BIN)/python benchmarks/soak.py

chaos: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/chaos.py

chaos-long: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/chaos.py --kills 200

check: $(VENV)/.dev docs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# A broken link or a name that does not exist fails the build. The site contains the theme's scripts
# and icons, so it gets their licences too (those of the scripts' parts are next to the scripts).
docs: $(VENV)/.dev
	$(BIN)/zensical build --strict
	@mkdir -p site/licences
	@cp $(VENV)/lib/python3*/site-packages/zensical-*.dist-info/licenses/LICENSE.md site/licences/zensical.md
	@cp $(VENV)/lib/python3*/site-packages/zensical/templates/.icons/lucide/LICENSE site/licences/lucide.txt

format: $(VENV)/.dev
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	git ls-files '*.md' | xargs $(BIN)/python tests/wrap_prose.py

benchmark: $(VENV)/.dev
	$(BIN)/python benchmarks/simatta_step.py
	$(BIN)/python benchmarks/tent_loop.py
	$(BIN)/python benchmarks/start_up.py
	$(BIN)/python benchmarks/start_up.py --serve

# Continues where it was stopped.
pacs: checkpoints/pacs-photo.safetensors
	$(BIN)/attakit run experiments/pacs/simatta.toml $(if $(wildcard runs/pacs-simatta/steps.jsonl),--resume)

checkpoints/pacs-photo.safetensors: | $(VENV)/.dev
	$(BIN)/attakit pretrain experiments/pacs/source.toml

# Continues where it was stopped.
figures: $(VENV)/.dev
	$(BIN)/attakit validate surfaces
	$(BIN)/attakit validate entropy
	$(BIN)/attakit validate clustering

# Runs only what is missing. The settings are chosen before the suites of the chosen ones are run. The
# suites go on where cells fail ("-"): without the images of PACS, a new method has no rank, and the page says so.
leaderboard: $(VENV)/.dev
	$(BIN)/python benchmarks/leaderboard_grid.py write
	-$(BIN)/attakit bench experiments/leaderboard/grid.toml experiments/leaderboard/published.toml --quiet
	$(BIN)/python benchmarks/leaderboard_grid.py choose
	-$(BIN)/attakit bench experiments/leaderboard/*.toml --quiet
	$(BIN)/python benchmarks/slim_results.py results/leaderboard results/leaderboard-grid results/leaderboard-tuned
	$(BIN)/python benchmarks/leaderboard_page.py
	$(BIN)/python tests/wrap_prose.py docs/leaderboard.md docs/leaderboard-streams.md

# The environment has the build tools already, so the build needs no second one.
wheel: $(VENV)/.dev
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/twine check --strict dist/*
	@sh tests/try_wheel.sh $(PYTHON)

clean:
	rm -rf $(VENV) dist build site .cache

# pip needs the torch pin in the same command as everything that depends on torch.
$(VENV)/.run: pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing attakit into $(VENV) (a minute or two on the first run) …"
	@$(INSTALL) -e '.[demo]'
	@touch $@

$(VENV)/.serve: $(VENV)/.run
	@echo "Installing the packages of the service into $(VENV) …"
	@$(INSTALL) -e '.[demo,service]'
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@echo "Installing the development tools into $(VENV) …"
	@$(INSTALL) -e '.[dev]'
	@touch $@
