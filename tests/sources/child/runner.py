"""What `kvguard run` does around a command, as a program of its own that tests can kill: GRACE COMMAND…"""

import signal
import sys

from kvguard.sources.child.command import ChildSource
from kvguard.sources.child.signals import FORWARDED, ForwardedSignals
from tests.sources.following import arrivals

if __name__ == "__main__":
    for number in FORWARDED:  # whoever runs the tests may ignore some
        signal.signal(number, signal.SIG_DFL)
    with ForwardedSignals() as signals:
        child = ChildSource(sys.argv[2:], grace_seconds=float(sys.argv[1]))
        signals.to(child)
        try:
            for _ in arrivals(child, tick=0.05):
                pass
        finally:
            child.close()
    sys.exit(child.exit_status)
