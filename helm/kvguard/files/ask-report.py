"""What the pod of `helm test` runs: ask one guard for its report, say the verdict, fail if there is none."""

import json
import sys
import urllib.request

with urllib.request.urlopen(sys.argv[1], timeout=10) as answer:
    report = json.load(answer)
if report.get("kind") != "report":
    sys.exit(f"not a report: {sorted(report)}")
verdict = report["verdict"]
print("verdict:", verdict["outcome"])
for reason in verdict["reasons"]:
    print("-", reason["message"])
