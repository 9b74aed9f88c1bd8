#!/usr/bin/env bash
# Real clients against the real server; docs/clients.md keeps what this prints.
#   PYTHON=python bash tests/clients/run.sh FOLDER [ADDRESS]
# PYTHON has requirements.txt and requirements-dev.txt. Environments (1 GB) and logs stay in FOLDER;
# environments that are there are used again. With ADDRESS no server is started; without node or
# ffplay their clients are left out.
set -euo pipefail
python=${PYTHON:-python}
mkdir -p "$1"
folder=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
url=${2:-http://127.0.0.1:${PORT:-8765}}
proxy=tcp://127.0.0.1:${PROXY_PORT:-10765}

for name in pipecat livekit wyoming; do
  [ -e "$folder/$name/done" ] && continue
  python3 -m venv "$folder/$name"
  "$folder/$name/bin/pip" install -q --ignore-requires-python -r "$here/requirements-$name.txt"
  if [ $name = wyoming ] && ! "$folder/wyoming/bin/python" -c 'def f[T](): ...' 2>/dev/null; then
    # Python 3.11: the same program without two type parameters, which only annotations mention.
    sed -Ei 's/^( *def \w+)\[[^]]+\]\(/\1(/; 1i from __future__ import annotations' \
      "$folder"/wyoming/lib/python3*/site-packages/wyoming_openai/{handler,utilities}.py
  fi
  touch "$folder/$name/done"
done
if command -v npm >/dev/null; then
  mkdir -p "$folder/node"
  cp "$here/package.json" "$here/say.mjs" "$folder/node"
  [ -e "$folder/node/node_modules/openai" ] ||
    (cd "$folder/node" && npm install --silent --no-audit --no-fund >&2)
fi

trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT
server=$$
if [ $# = 1 ]; then
  TONTAUBE_PORT=${url##*:} TONTAUBE_DATA_DIR="$folder/data" \
    "$python" "$here/../../app.py" 2>"$folder/server.log" &
  server=$!
fi
until curl -sf -o "$folder/ready" "$url/ready"; do
  kill -0 $server 2>/dev/null || { tail -n 5 "$folder/server.log" >&2; exit 1; }
  sleep 0.5
done

say() { # a program and its arguments; what libraries log goes to a file
  "$@" 2>>"$folder/clients.log" || { echo "failed: $*"; tail -n 5 "$folder/clients.log"; exit 1; }
}

body='{"model": "tts-1", "voice": "alloy", "input": "The kettle is on. The bread is still warm."}'
post=(curl -sN "$url/v1/audio/speech" -H 'content-type: application/json' -d "$body")
echo "$(curl --version | cut -d' ' -f1,2 | head -n 1):"
figures='%{content_type}, first byte after %{time_starttransfer} s, %{size_download} bytes in %{time_total} s'
echo "  $("${post[@]}" -o "$folder/speech.mp3" -w "$figures")"
echo "  a key is not needed, a voice is: $("${post[@]/alloy/nobody}" | head -c 76)…"
if command -v ffplay >/dev/null; then
  echo "$(ffplay -version | head -n 1 | cut -d' ' -f1-3), from curl, to a sound card that is none:"
  "${post[@]}" | SDL_AUDIODRIVER=dummy ffplay -nodisp -autoexit -i - >"$folder/ffplay.log" 2>&1
  echo "  $(grep -aom1 'Audio: [^,]*, [0-9]* Hz' "$folder/ffplay.log"); played to its end"
fi
say "$python" "$here/play.py" "$url"
say "$python" "$here/say_openai.py" "$url"
if command -v npm >/dev/null; then say node "$folder/node/say.mjs" "$url"; fi
say "$folder/pipecat/bin/python" "$here/say_pipecat.py" "$url"
say "$folder/livekit/bin/python" "$here/say_livekit.py" "$url"
"$folder/wyoming/bin/python" -m wyoming_openai --uri "$proxy" --tts-openai-url "$url/v1" \
  --tts-streaming-models tts-1 2>"$folder/wyoming.log" >&2 &
timeout 60 bash -c "until (: </dev/tcp/127.0.0.1/${proxy##*:}) 2>/dev/null; do sleep 0.2; done"
say "$folder/wyoming/bin/python" "$here/say_wyoming.py" "$url" "$proxy"
say "$python" "$here/say_openwebui.py" "$url"
say "$python" "$here/talk.py" "$url"
