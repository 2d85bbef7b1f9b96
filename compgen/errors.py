"""What went wrong, in one sentence: for the commands of this package and for fairseq's with it."""

import functools
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

# their ValueErrors and OSErrors are sentences already
PACKAGES = ("compgen", "compgen_cli", "compgen_fairseq")
LONGEST = 600  # characters of a message that is not ours; PyTorch lists every weight
Command = Callable[..., int]  # a command's main: its arguments, without its name


def sentence(error: BaseException) -> str:
    """What to tell whoever typed the command, on one line.

    What this package refuses is said in its own words, also where fairseq answers it by an error of
    its own: that architectures differ, whatever was wrong with weights. An ``OSError`` names its
    file. Of anything else the message is given with the place it comes from, and how to see the way
    there. What another process died of is read from the traceback it left.
    """
    text = " ".join(str(error).split())
    kind, (package, place) = type(error).__name__, _place(error)
    if told := _about_output(error):
        return told
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if _refused(error):
        return text
    if (first := error.__context__) is not None and _refused(first):
        return sentence(first)
    if isinstance(first, RuntimeError) and (other := _other_weights(str(first))):
        return f"{text.rstrip('.')}: {other}"
    if isinstance(error, OSError) and error.errno is None and text:
        return text  # somebody's own words
    if isinstance(error, AssertionError) and package.startswith("fairseq") and " " in text:
        return text
    for part in str(error).split("During handling of the above exception"):
        if (inner := _of_another_process(part)) is not None:
            ours, kind, text, place = inner
            if ours and kind in ("ValueError", "OSError", "FileNotFoundError"):
                return text
    if not re.search(r"\w\s+\w", text):  # KeyError: 'x'
        text = f"{kind}: {text}" if text else kind
    if len(text) > LONGEST:
        text = f"{text[:LONGEST].rstrip()} ..."
    return f"{text} ({kind} in {place}; COMPGEN_TRACEBACK=1 shows the way there)"


def _other_weights(text: str) -> str:
    """In what PyTorch says a model and a state differ: a size if one does, else the first line."""
    lines = [line.strip() for line in text.splitlines()]
    if not lines or not lines[0].startswith("Error(s) in loading state_dict"):
        return ""
    sizes = [line for line in lines if line.startswith("size mismatch")]
    return [*sizes, *lines[1:], ""][0][:300]


def _refused(error: BaseException) -> bool:
    """Whether this package raised it, as a sentence for the user."""
    return isinstance(error, ValueError | OSError) and _place(error)[0] in PACKAGES


def _place(error: BaseException) -> tuple[str, str]:
    """The package in which an error was raised, and the line."""
    frames = list(traceback.walk_tb(error.__traceback__))
    if not frames:
        return "", "no known line"
    frame, line = frames[-1]
    spec = frame.f_globals.get("__spec__")  # knows what __main__ is
    name = getattr(spec, "name", None) or frame.f_globals.get("__name__", "")
    package = name.partition(".")[0]
    return package, f"{_short(frame.f_code.co_filename)}:{line}"


def _short(file: str) -> str:
    return "/".join(Path(file).parts[-2:])


def _of_another_process(text: str) -> tuple[bool, str, str, str] | None:
    """Whether it is ours, the kind, the message and the place of an error that PyTorch passed on
    from a worker as the text of its traceback."""
    places = re.findall(r'^\s*File "(.+)", line (\d+), in', text, re.MULTILINE)
    found = re.findall(r"^([A-Za-z_][\w.]*)(?:: (.*))?$", text, re.MULTILINE)
    if "Traceback (most recent call last):" not in text or not places or not found:
        return None
    (file, line), (kind, message) = places[-1], found[-1]
    ours = any(part in PACKAGES for part in Path(file).parts)
    return ours, kind.rpartition(".")[2], message, f"{_short(file)}:{line}"


def command(name: str, interrupted: str = "interrupted") -> Callable[[Command], Command]:
    """Make a function the whole of a command: errors end in one sentence, and so does Ctrl-C.

    The function takes the words after the command's name and returns its exit status. With
    ``COMPGEN_TRACEBACK=1`` errors pass. A reader that goes away, as ``head`` does, is no error;
    standard output that can't be written to is one.

    Args:
        name: of the command, which begins the sentence.
        interrupted: what is said of Ctrl-C.
    """

    def whole(main: Command) -> Command:
        @functools.wraps(main)
        def run(argv: list[str] | None = None) -> int:
            try:
                status = main(argv)
                if sys.stdout:  # None where it is closed
                    sys.stdout.flush()
                return status
            except BrokenPipeError:
                drop_output()
                return 128 + signal.SIGPIPE
            except KeyboardInterrupt:
                print(f"\n{name}: {interrupted}", file=sys.stderr)
                return 128 + signal.SIGINT
            except Exception as error:
                if os.environ.get("COMPGEN_TRACEBACK"):
                    raise
                print(f"{name}: {sentence(error)}", file=sys.stderr)
                return 1

        return run

    return whole


def _about_output(error: BaseException) -> str | None:
    """The sentence if what failed is standard output, which is then given up."""
    if not isinstance(error, OSError) or error.filename is not None or error.errno is None:
        return None
    if _place(error)[0] not in (*PACKAGES, "fairseq_cli"):  # the file that is written to is another
        return None
    drop_output()
    return f"standard output: {os.strerror(error.errno)}"


def drop_output() -> None:
    """Discard what is still to be written to standard output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
