"""What a user can get wrong: two errors, each told in one line that says what, where and what to do."""


class UserError(Exception):
    """The base of both; its text is the line that a face prints. Programming errors are never of this kind."""


class ConfigError(UserError):
    """Something a person wrote is wrong: an SLO file, a baseline, a model config, a flag's value."""


class SourceError(UserError):
    """Something cannot be read: a file, an archive, a socket, a server."""
