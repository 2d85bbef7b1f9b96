"""How functions of fairseq are replaced."""

import functools
import inspect
from collections.abc import Callable
from typing import Any


def around(owner: Any, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Replace a function of a module or class of fairseq by the decorated one.

    That is called with the replaced function and the arguments of the call. It reaches the
    callers that look the function up where it is defined.
    """

    def replace(ours: Callable[..., Any]) -> Callable[..., Any]:
        theirs = getattr(owner, name)

        @functools.wraps(theirs)
        def call(*args: Any, **kwargs: Any) -> Any:
            return ours(theirs, *args, **kwargs)

        static = isinstance(inspect.getattr_static(owner, name), staticmethod)
        setattr(owner, name, staticmethod(call) if static else call)
        return ours

    return replace
