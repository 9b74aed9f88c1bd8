#!/bin/sh
# Upstream's networks and ours on the same random weights: environments, answers, comparison.
#   sh tests/parity/run.sh FOLDER
# Environments (6 GB) and answers stay in FOLDER; environments that are there are used again.
# The comparison runs in the product's environment: PYTHON, or python.
set -eu
folder=$1
parity=$(dirname "$0")
mkdir -p "$folder"

if [ ! -e "$folder/dualcodec-env" ]; then
    python3 -m venv "$folder/dualcodec-env"
    "$folder/dualcodec-env/bin/pip" install --quiet -r "$parity/requirements-dualcodec.txt"
    # Its compiled extension wants the CUDA build of torch; without it torchaudio works as well.
    rm -rf "$folder"/dualcodec-env/lib/python3*/site-packages/torchaudio/lib
fi
if [ ! -e "$folder/vibevoice-env" ]; then
    python3 -m venv "$folder/vibevoice-env"
    "$folder/vibevoice-env/bin/pip" install --quiet -r "$parity/requirements-vibevoice.txt"
    "$folder/vibevoice-env/bin/pip" install --quiet --no-deps vibevoice==0.0.1 # its tokenizer alone
fi

"$folder/dualcodec-env/bin/python" "$parity/write_dualcodec.py" "$folder/answers"
"$folder/vibevoice-env/bin/python" "$parity/write_vibevoice.py" "$folder/answers"
cd "$parity/../.."
"${PYTHON:-python}" -m tests.parity.compare "$folder/answers"
