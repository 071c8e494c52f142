"""A command as a source: started, listened to, signalled, and ended with everything that it started."""
