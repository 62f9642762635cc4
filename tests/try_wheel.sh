#!/bin/sh
# Install the wheel in dist/ into an empty environment, and run the demo there, outside the
# repository. The argument is the Python to use.
set -e
constraints=$PWD/constraints.txt
wheel=$(ls "$PWD"/dist/*.whl)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo "Installing $(basename "$wheel") into an empty environment …"
"$1" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    -c "$constraints" "$wheel[demo]"
cd "$folder"
venv/bin/attakit --version
venv/bin/attakit demo
