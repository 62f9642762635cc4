#!/bin/sh
# Find a Chromium for the browser tests, or get one: from the system's packages when that is
# allowed, else from Playwright. Without one the browser tests are skipped (under CI=true they fail).
for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null 2>&1 && exit 0
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing Chromium for the browser tests …"
    apt-get update -qq && apt-get install -y -qq chromium >/dev/null && exit 0
fi
echo "Asking Playwright for a Chromium for the browser tests …"
"$1" -m playwright install chromium >/dev/null 2>&1 && exit 0
echo "No Chromium found and none could be installed: browser tests will be skipped."
echo "Install one with your package manager, or run: $1 -m playwright install chromium"
exit 0
