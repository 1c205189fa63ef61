# Short names for the common tasks. The work is done by CMakeLists.txt, CMakePresets.json and scripts/.
JOBS ?= $(shell nproc)
# Most tests wait for servers and timeouts and use little processor time. Tests that use more set PROCESSORS.
TEST_JOBS ?= $(shell echo $$((2 * $$(nproc))))
PREFIX ?= /usr/local
STORE ?= file
DURATION ?= 20m
SECONDS ?= 60

.PHONY: help deps demo test sanitize fuzz coverage valgrind bench soak format lint install clean build-dev build-release

help:
	@echo 'make demo       install missing packages, build, and show what baton does; STORE=zk or etcd: on a server'
	@echo 'make test       build and run all tests'
	@echo 'make sanitize   run the tests under ASan+UBSan and TSan, and the fuzzers for 15 s each'
	@echo 'make coverage   show which lines of src/ the tests run; valgrind: check 100,000 acquires for leaks'
	@echo 'make fuzz       run each fuzzer for a minute (SECONDS=60), two at a time'
	@echo 'make bench      run the benchmarks; soak: long runs (DURATION=20m STORE=zk, etcd, both or file); lint, format; install PREFIX=...; clean'

# What make demo and make test install first. DEPS: sets of scripts/install-deps.
DEPS ?= build test
deps:
	@scripts/install-deps $(DEPS)

build-dev: deps
	@cmake --preset dev >build/dev.log 2>&1 || (cat build/dev.log; exit 1)
	@cmake --build --preset dev -j $(JOBS)

build-release:
	@scripts/install-deps build bench
	@cmake --preset release >build/release.log 2>&1 || (cat build/release.log; exit 1)
	@cmake --build --preset release -j $(JOBS)

build-dev build-release sanitize fuzz lint: | build
build:
	@mkdir -p build

demo: DEPS = build
demo: deps | build
	@cmake --preset release -DBATON_BUILD_BENCH=OFF >build/demo.log 2>&1 || (cat build/demo.log; exit 1)
	@echo 'building (about a minute; the log is build/demo.log)'
	@cmake --build --preset release -j $(JOBS) >>build/demo.log 2>&1 || (tail -50 build/demo.log; exit 1)
	@STORE=$(STORE) scripts/demo build/release

test: build-dev
	@ctest --preset dev -j $(TEST_JOBS)
	@build/dev/tests/secrets/baton_secret_scan build/dev/Testing/Temporary/LastTest.log build/dev/chaos.html

sanitize:
	@scripts/install-deps build test fuzz
	@scripts/sanitize $(JOBS) $(TEST_JOBS)

coverage: | build
	@scripts/install-deps build test coverage
	@scripts/coverage $(JOBS) $(TEST_JOBS)

valgrind: build-dev
	@scripts/valgrind build/dev

fuzz:
	@scripts/install-deps build fuzz
	@cmake --preset fuzz -DCMAKE_CXX_COMPILER=clang++-$$(scripts/clang-version) -DBATON_FUZZ_SECONDS=$(SECONDS) >build/fuzz.log 2>&1 || (cat build/fuzz.log; exit 1)
	@cmake --build --preset fuzz -j $(JOBS)
	@ctest --preset fuzz -j 2

bench: build-release
	@bench/run build/release

# The default of soak is STORE=both; the default of the other targets is STORE=file.
soak: build-dev
	@scripts/soak build/dev $(DURATION) $(if $(filter file,$(origin STORE)),both,$(STORE))

format:
	@scripts/install-deps lint
	@command -v clang-format-14 >/dev/null || { echo 'make format: clang-format-14 is missing, and other versions format differently; run this on Debian 12' >&2; exit 1; }
	@git ls-files '*.h' '*.cpp' | xargs clang-format-14 -i
	@git ls-files '*.go' | xargs gofmt -w

lint:
	@scripts/install-deps build test lint
	@scripts/lint $(JOBS)

install: | build
	@scripts/install-deps build
	@cmake --preset release -DBATON_BUILD_BENCH=OFF -DBATON_BUILD_EXAMPLES=OFF -DCMAKE_INSTALL_PREFIX=$(PREFIX) -B build/install >build/install.log 2>&1 || (cat build/install.log; exit 1)
	@cmake --build build/install -j $(JOBS)
	@cmake --install build/install

clean:
	@rm -rf build
