"""thaikit: evaluate large language models in Thai, from notebooks, with numbers that can be traced to rows."""

__version__ = "0.1.0"


class ThaikitError(Exception):
    """A fault the user can mend; the message is one sentence: where, what was found, what is allowed, what to do."""
