#!/bin/sh
# Commands, payloads and pipelines by the number of io-threads, with 512 connections. See io_threads.py.
#   bench/io-threads.sh [options]
exec "$(dirname "$0")/start.sh" io_threads.py "$@"
