#!/usr/bin/env bash
# Build a wheel, install it into an empty environment outside the checkout, without a compiler, and check a snapshot there.
set -euo pipefail
unset PYTHONPATH # a checkout that it names would count as installed
root=$(cd "$(dirname "$0")/.." && pwd)
python=$root/${1:-.venv/bin/python}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"$python" -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir "$place/dist" "$root"
wheel=$(echo "$place"/dist/*.whl)
[[ $wheel == *-py3-none-any.whl ]] || { echo "the wheel is not for every platform: $wheel" >&2; exit 1; }
cp "$root/samples/workspaces/regulated.json" "$place/snapshot.json"
# The pip of the checkout serves the environment too, and what is used once is not compiled in advance: both take seconds.
"$python" -m venv --without-pip "$place/venv"
into=(env PATH="$place/venv/bin" "$python" -m pip --python "$place/venv/bin/python" install --quiet --disable-pip-version-check --no-compile)
"${into[@]}" --no-deps --only-binary :all: --require-hashes -r "$root/requirements.lock"
"${into[@]}" --no-deps "$wheel"
"$python" -m pip --python "$place/venv/bin/python" check --quiet --disable-pip-version-check # the lock holds all that the wheel needs
cd "$place"
code=0
started=${EPOCHREALTIME/./}
env -i HOME="$place" PATH="$place/venv/bin" policyeng check snapshot.json --as-of 2026-06-01T00:00:00Z --format json >report.json || code=$?
ended=${EPOCHREALTIME/./}
[ "$code" -eq 1 ] || { echo "expected exit 1, found $code" >&2; exit 1; }
# The policies come compiled: the first run compiles none, so it stores nothing and does not load the compiler.
[ ! -e .cache ] || { echo "the first run compiled policies" >&2; exit 1; }
imported=$(env -i HOME="$place" venv/bin/python -X importtime venv/bin/policyeng check snapshot.json --as-of 2026-06-01T00:00:00Z --format json 2>&1 >again.json) || true
[[ $imported == *policyeng.prebuilt* && $imported != *policyeng.rego.linking* && $imported != *policyeng.rego.parser* ]] \
	|| { echo "a run without a cache loads the compiler" >&2; exit 1; }
cmp report.json again.json
# Where files of a policy were edited, it is compiled as it is now.
policy=$(echo venv/lib/python*/site-packages/policyeng/policies/network/public_network_access/public_network_access.rego)
cp "$policy" policy.rego
echo 'deny contains {"msg": "edited", "path": "/properties"}' >>"$policy"
edited=$(env -i HOME="$place" venv/bin/policyeng check snapshot.json --as-of 2026-06-01T00:00:00Z --format json) || true
[[ $edited == *'"edited"'* ]] || { echo "an edited policy is not used" >&2; exit 1; }
cp policy.rego "$policy"
venv/bin/python - <<'PYTHON'
import json, pathlib, policyeng
home = pathlib.Path(policyeng.__file__).parent
assert "site-packages" in home.parts, home
assert (home / "policies" / ".manifest").is_file()
report = json.load(open("report.json"))
assert report["summary"]["fail"] > 0 and report["summary"]["error"] == 0, report["summary"]
print(f"the installed wheel gave {len(report['findings'])} findings with {report['bundle']['name']} {report['bundle']['revision']}")
PYTHON
venv/bin/policyeng test --select AML-NET-001 | tail -1
cases() { (cd "$1" && find . -name cases.yaml | sort); }
diff <(cases "$root/policies") <(cases venv/lib/python*/site-packages/policyeng/policies) >&2 || { echo "the wheel lacks cases" >&2; exit 1; }
venv/bin/policyeng bundle build --output bundle.tar.gz >/dev/null
venv/bin/policyeng bundle verify bundle.tar.gz >/dev/null
code=0
: > public.pem
said=$(venv/bin/policyeng bundle verify bundle.tar.gz --verification-key public.pem 2>&1) || code=$?
[[ $code -eq 3 && $said == *"install \`policyeng[signing]\`"* ]] || { echo "without its libraries a key gave exit $code: $said" >&2; exit 1; }
installed=$(find venv/lib/python*/site-packages/policyeng -name '*.pyc' -prune -o -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum }')
echo "the wheel has $(stat -c %s "$wheel") bytes, policyeng installed $installed; the first report took $(((ended - started) / 1000)) ms"
