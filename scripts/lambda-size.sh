#!/usr/bin/env bash
# Builds the projector as a Lambda function is built, and prints its size, its size
# as a zip, and how long it takes from its start until it asks for the first event
# (the median of 9), on an embedded store and without any network.
set -euo pipefail
cd "$(dirname "$0")/.."
exec "${GO:-go}" run ./scripts/lambdasize "$@"
