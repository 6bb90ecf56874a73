# Thin entry points; everything real is in CMake and in the scripts they call.
BUILD := build/release
PYTHON := /usr/bin/python3
JOBS := $(shell nproc)

.PHONY: run build test test-asan test-tsan test-full bench deps clean

run: build
	$(BUILD)/ingot-server conf/ingot.conf $(ARGS)

deps:
	@deps/install.sh

build: deps
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS) --target ingot-server

test: deps
	@tests/run.sh

# The random sequences, the crash rounds and the sanitizers at full length.
test-full: deps
	@INGOT_TEST_FULL=1 tests/run.sh

bench: build
	@$(PYTHON) bench/run.py $(ARGS)

clean:
	rm -rf build
