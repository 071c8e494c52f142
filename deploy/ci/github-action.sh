#!/usr/bin/env bash
# The one step of action.yml: installs kvguard beside the action if it is not there, and judges the log.
# The step's status is kvguard's: 0 met, 1 missed or failed, 2 usage or unreadable input, 3 unknown.
set -uo pipefail

kvguard=$(command -v kvguard || true)
if [ -z "$kvguard" ]; then
  environment=$RUNNER_TEMP/kvguard-environment
  python3 -m venv "$environment" && "$environment/bin/pip" install --quiet "$GITHUB_ACTION_PATH" || exit 2
  kvguard=$environment/bin/kvguard
fi

# shellcheck disable=SC2153  # action.yml sets it
mapfile -t logs < <(printf '%s\n' "$KVGUARD_LOG" | sed '/^[[:space:]]*$/d')
read -r -a flags <<< "$(printf '%s' "$KVGUARD_FLAGS" | tr '\n' ' ')"
[ -z "$KVGUARD_SLO" ] || flags+=(--slo "$KVGUARD_SLO")
[ -z "$KVGUARD_JUNIT" ] || flags+=(--format "junit=$KVGUARD_JUNIT")
[ "$KVGUARD_SUMMARY" != true ] || flags+=(--format "markdown=$GITHUB_STEP_SUMMARY")
annotations=$RUNNER_TEMP/kvguard-annotations

"$kvguard" check "${logs[@]}" --format text --format "github=$annotations" --format "json=$KVGUARD_REPORT" "${flags[@]}"
status=$?
case $status in
  0) outcome=pass ;;
  1) outcome=fail ;;
  3) outcome=unknown ;;
  *) echo "::error title=kvguard::the log could not be judged, see the step's output"; exit "$status" ;;
esac
cat "$annotations"
echo "outcome=$outcome" >> "$GITHUB_OUTPUT"
exit "$status"
