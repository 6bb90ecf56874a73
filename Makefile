# Other names for the scripts, which do the work: nothing but `clean` is written here only.
.PHONY: run build test test-full bench clean

run:
	@./run $(ARGS)

build:
	@deps/build.sh

test:
	@./test

# The random sequences, the crash rounds and the sanitizers at full length.
test-full:
	@INGOT_TEST_FULL=1 ./test

bench:
	@bench/run.sh $(ARGS)

clean:
	rm -rf build
