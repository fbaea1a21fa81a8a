"""`alluvium VERB URL`: the commands, and the one place where errors become exit codes.

Exit codes: 0 done, 1 `doctor` found something, 2 the request failed, 3 alluvium itself is at fault.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext

import click

import alluvium
from alluvium.cli import arguments as a
from alluvium.cli.arguments import ABOUT
from alluvium.cli.escapes import printable
from alluvium.cli.render import print_error
from alluvium.errors import AlluviumError

FAILED = 2
DEFECT = 3


def _command(name: str, place: str, *parameters: click.Parameter) -> click.Command:
    """A command that calls a function, whose documentation is its help.

    Args:
        name: What it is called.
        place: `module.function` beside this module. It is loaded now: most verbs load more than those that look.
        parameters: What the function takes.
    """
    module, _, function = place.rpartition(".")
    run: Callable[..., None] = getattr(importlib.import_module(f"alluvium.cli.{module}"), function)
    told = [(one.metavar or "", ABOUT[one.metavar or ""]) for one in parameters if isinstance(one, click.Argument)]
    width = max(len(name) for name, _ in told)
    # The mark keeps click from joining the lines.
    arguments = "\n".join(["\b", "Arguments:", *(f"  {name:<{width}}  {text}" for name, text in told)])
    text = f"{inspect.cleandoc(run.__doc__ or '')}\n\n{arguments}"
    return click.Command(name, params=list(parameters), callback=run, help=text)


def _print_version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"alluvium {alluvium.__version__}")
        context.exit()


_STATE = (a.VERSION, a.TIMESTAMP)
_PRINTED = (a.FORMAT, a.STORAGE)
_FIRST, _LAST = (click.Argument([n], type=int, metavar=m) for n, m in (("start", "FIRST"), ("end", "LAST")))
_V1, _V2 = (click.Argument([n], type=int, metavar=m) for n, m in (("first", "V1"), ("second", "V2")))
_START = click.Argument(["start"], metavar="START")
_END = click.Argument(["end"], required=False, metavar="[END]")
_NAME = click.Argument(["name"], metavar="NAME")
_DRY_RUN = click.Option(["--dry-run"], is_flag=True, help="Only tell what would go.")
_HOURS = click.Option(["--retention-hours"], type=click.FloatRange(min=0), help="For how long removed files stay.")
_LITE = click.Option(["--lite"], is_flag=True, help="Go by the log alone: the folder is not listed.")
_CLONES = click.Option(
    ["--clone", "clones"], multiple=True, metavar="URL", help="With --dry-run: a clone that may need the files."
)
_NO_CHECK = click.Option(["--no-check"], is_flag=True, help="Allow a retention shorter than the table's.")
_PARTITIONS = click.Option(["--where", "-w"], help="Partitions: a predicate in Spark SQL over their columns.")
_ZORDER_BY = click.Option(["--zorder-by"], metavar="COLUMNS", help="Order rows by these, separated by commas.")
_SORT_BY = click.Option(["--sort-by"], metavar="COLUMNS", help="Sort rows by these, from file to file.")
_FULL = click.Option(["--full"], is_flag=True, help="Of a clustered table, also what is clustered by other columns.")
_PURGE = click.Option(["--purge"], is_flag=True, help="Only files that hold what the table does not show (REORG).")
_TARGET = click.Argument(["target"], metavar="TARGET")
_SHALLOW = click.Option(["--shallow"], is_flag=True, help="Name the files where they are instead of copying them.")
_REPLACE = click.Option(["--replace"], is_flag=True, help="Put the clone in the place of a table that is there.")
_PROPERTY = click.Option(["--property", "pairs"], multiple=True, metavar="KEY=VALUE", help="Of the clone; repeatable.")
_COPY_DRY_RUN = click.Option(["--dry-run"], is_flag=True, help="Only tell what would come of it.")
_PARTITIONED = click.Option(["--partitioned-by"], metavar="COLUMNS", help="The folders' columns: 'day date, shop int'.")
_NO_STATISTICS = click.Option(["--no-statistics"], is_flag=True, help="Leave statistics out.")
_READER = click.Argument(["reader"], metavar="READER", type=int)
_WRITER = click.Argument(["writer"], metavar="WRITER", type=int)
_REPAIR = click.Option(["--repair"], is_flag=True, help="Mend what can be mended.")
_PROCEDURE = click.Argument(["procedure"], metavar="PROCEDURE")
_VALUES = click.Argument(["values"], nargs=-1, metavar="[NAME=VALUE]...")
_BRANCH = click.Option(["--branch", "-b"], help="A branch of the table.")
_TELL = click.Option(["--dry-run"], is_flag=True, help="Only tell what would be done.")
#: What each command calls, and with what.
_COMMANDS: Mapping[str, tuple[str, tuple[click.Parameter, ...]]] = {
    "show": ("inspect.show", (a.URL, *_STATE, *_PRINTED)),
    "schema": ("inspect.schema", (a.URL, *_STATE, *_PRINTED)),
    "history": ("inspect.history", (a.URL, a.LIMIT, *_STATE, *_PRINTED)),
    "files": ("inspect.files", (a.URL, a.WHERE, a.LIMIT, *_STATE, *_PRINTED)),
    "cat": ("inspect.cat", (a.URL, a.COLUMNS, a.WHERE, a.ROWS, *_STATE, *_PRINTED)),
    "changes": ("inspect.changes", (a.URL, _START, _END, a.COLUMNS, a.WHERE, a.ROWS, *_PRINTED)),
    "diff": ("inspect.diff", (a.URL, _V1, _V2, *_PRINTED)),
    "system": ("inspect.system", (a.URL, _NAME, a.ROWS, *_STATE, *_PRINTED)),
    "doctor": ("doctor.doctor", (a.URL, _REPAIR, _TELL, *_PRINTED)),
    "checkpoint": ("log_upkeep.checkpoint", (a.URL, *_PRINTED)),
    "clean-log": ("log_upkeep.clean", (a.URL, _DRY_RUN, *_PRINTED)),
    "compact-log": ("log_upkeep.compact", (a.URL, _FIRST, _LAST, *_PRINTED)),
    "optimize": (
        "rewrite.optimize",
        (a.URL, _PARTITIONS, _ZORDER_BY, _SORT_BY, _FULL, _PURGE, _DRY_RUN, *_PRINTED),
    ),
    "versions": ("past.versions", (a.URL, a.LIMIT, *_PRINTED)),
    "restore": ("past.restore", (a.URL, *_STATE, _TELL, *_PRINTED)),
    "generate": ("past.generate", (a.URL, *_PRINTED)),
    "clone": ("made.clone", (a.URL, _TARGET, *_STATE, _SHALLOW, _REPLACE, _PROPERTY, _COPY_DRY_RUN, *_PRINTED)),
    "convert": ("made.convert", (a.URL, _PARTITIONED, _NO_STATISTICS, _TELL, *_PRINTED)),
    "upgrade": ("upgrade.upgrade", (a.URL, _READER, _WRITER, _COPY_DRY_RUN, *_PRINTED)),
    "vacuum": ("vacuum.vacuum", (a.URL, _HOURS, _LITE, _NO_CHECK, _DRY_RUN, _CLONES, *_PRINTED)),
    "paimon": ("procedures.call", (_PROCEDURE, a.URL, _VALUES, _BRANCH, *_PRINTED)),
}
_VERSION = click.Option(
    ["--version"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version of alluvium.",
)


class _Commands(click.Group):
    """The commands in the order of the table, each made when somebody asks for it."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        found = _COMMANDS.get(name)
        return None if found is None else _command(name, found[0], *found[1])


app = _Commands(
    "alluvium",
    params=[_VERSION],
    help="Looks at Delta Lake and Apache Paimon tables, without Spark.",
    no_args_is_help=True,
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command and ends the process.

    Args:
        arguments: In place of the process's own.
    """
    try:
        # A bar for people who wait, on a terminal alone.
        with alluvium.progress() if sys.stderr.isatty() else nullcontext():
            app(args=None if arguments is None else list(arguments), prog_name="alluvium")
    except AlluviumError as error:
        print_error(error)
        sys.exit(FAILED)
    except Exception:  # noqa: BLE001 # a defect of ours must not look like an answer of `doctor`
        sys.stderr.write(printable(traceback.format_exc()))
        sys.stderr.write("this is a defect of alluvium: please report it with the lines above\n")
        sys.exit(DEFECT)
    finally:
        _end_output()


def _end_output() -> None:
    """Whoever read the output may have seen enough: the rest goes nowhere, or Python complains of it at its end."""
    output = sys.__stdout__
    if output is None or output.closed:
        return
    try:
        output.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())
