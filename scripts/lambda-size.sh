#!/usr/bin/env bash
# Builds the projector like a Lambda function and prints its size, its size as a zip, and
# the time from its start until it asks for the first event (the median of 9), with an
# embedded store and without a network.
set -euo pipefail
cd "$(dirname "$0")/.."
exec "${GO:-go}" run ./scripts/lambdasize "$@"
