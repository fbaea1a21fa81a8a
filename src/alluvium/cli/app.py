"""`alluvium VERB URL`: the commands, and the one place where errors become exit codes.

Exit codes: 0 done, 1 `doctor` found something, 2 the request failed, 3 alluvium itself is at fault.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

import alluvium
from alluvium.cli import inspect, maintain
from alluvium.cli.escapes import printable
from alluvium.cli.render import print_error
from alluvium.errors import AlluviumError

FAILED = 2
DEFECT = 3

app = typer.Typer(
    name="alluvium",
    help="Looks at Delta Lake and Apache Paimon tables, without Spark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.command("show")(inspect.show)
app.command("schema")(inspect.schema)
app.command("history")(inspect.history)
app.command("files")(inspect.files)
app.command("cat")(inspect.cat)
app.command("changes")(inspect.changes)
app.command("diff")(inspect.diff)
app.command("system")(inspect.system)
app.command("doctor")(maintain.doctor)
app.command("checkpoint")(maintain.checkpoint)
app.command("clean-log")(maintain.clean)
app.command("compact-log")(maintain.compact)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"alluvium {alluvium.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version of alluvium.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Options of the program itself."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command and ends the process.

    Args:
        arguments: In place of the process's own.
    """
    try:
        app(args=None if arguments is None else list(arguments), prog_name="alluvium")
    except AlluviumError as error:
        print_error(error)
        sys.exit(FAILED)
    except Exception:  # noqa: BLE001 # a defect of ours must not look like an answer of `doctor`
        sys.stderr.write(printable(traceback.format_exc()))
        sys.stderr.write("this is a defect of alluvium: please report it with the lines above\n")
        sys.exit(DEFECT)
