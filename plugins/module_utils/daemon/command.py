# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The command line of a daemon, and the one place where whatever ends it becomes a log line and an exit status."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
import threading
import typing as t

from ..checkpoint.errors import DraError
from .common_settings import LogSettings
from .daemon_protocol import Daemon
from .exit_codes import ExitCode, exit_code_for
from .life import Life, StillWorkingError, end_by_signal
from .log_output import LogOutput, start_log
from .notify import Notifier
from .problems import SettingsError
from .settings import load_settings

log = logging.getLogger(__name__)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> t.NoReturn:
        self.print_usage(sys.stderr)
        self.exit(ExitCode.USAGE, f"{self.prog}: {message}\n")


def run_daemon(
    daemon: Daemon, argv: t.Sequence[str] | None = None, environ: t.MutableMapping[str, str] | None = None
) -> int:
    """Run ``daemon`` as the main program does and return its exit status; use it as ``raise SystemExit(...)``.

    Nothing is ever raised: settings that cannot be used, a failure, a bug, each becomes log lines and its own status.
    """
    environ = os.environ if environ is None else environ
    options = _parser(daemon).parse_args(argv)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is something to reload it would end the process
    output = start_log(environ=environ)
    try:
        return _end(_run(daemon, options, environ, output))
    finally:
        output.finish()


def _parser(daemon: Daemon) -> argparse.ArgumentParser:
    parser = _Parser(prog=daemon.name, description=daemon.schema.get("description", daemon.schema.get("title")))
    parser.add_argument("--config", required=True, metavar="FILE", help="the settings, a YAML file")
    parser.add_argument("--check-config", action="store_true", help="only tell whether the settings can be used")
    parser.add_argument("--version", action="version", version=f"{daemon.name} {daemon.version}")
    return parser


def _run(
    daemon: Daemon, options: argparse.Namespace, environ: t.MutableMapping[str, str], output: LogOutput
) -> ExitCode:
    def load() -> t.Any:
        with_files = options.check_config  # at a start some of them may be missing and come later
        return load_settings(daemon.schema, daemon.name, options.config, environ, with_files=with_files)

    try:
        settings = load()
        if options.check_config:
            sys.stdout.write(f"{options.config} can be used.\n")
            return ExitCode.OK
        output.use(settings.section(LogSettings, "log"))
        notifier = Notifier.from_environment(environ)

        async def live() -> None:
            await Life(daemon, settings, load, output, notifier).run()

        with asyncio.Runner() as runner:
            runner.run(live())
    except BaseException as error:
        return _told(daemon, error)
    log.info("ended as asked daemon=%s", daemon.name)
    return ExitCode.OK


def _told(daemon: Daemon, error: BaseException) -> ExitCode:
    """Log why the daemon ends; returns the exit status."""
    if isinstance(error, KeyboardInterrupt):
        end_by_signal(signal.SIGINT)
    cause, code = _cause(error, daemon)
    if isinstance(cause, SettingsError):
        for problem in cause.problems:
            log.critical("settings cannot be used problem=%s", problem)
    elif isinstance(cause, ModuleNotFoundError) and code is ExitCode.LIBRARY:
        log.critical("a Python library is missing library=%s python=%s", cause.name, sys.executable)
    elif code is ExitCode.BUG:
        log.critical("the daemon ended by a bug, please report it with the lines below", exc_info=cause)
    else:
        log.critical("the daemon cannot go on error=%s", cause, exc_info=cause if isinstance(cause, DraError) else None)
    log.critical("ended daemon=%s exit_code=%d reason=%s", daemon.name, code, code.name.lower())
    return code


def _cause(error: BaseException, daemon: Daemon) -> tuple[BaseException, ExitCode]:
    """The error that counts and its status: of several at once a bug goes first, then the one that came first."""
    group: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    if group:
        found = [_cause(inner, daemon) for inner in group]
        return next((one for one in found if one[1] is ExitCode.BUG), found[0])
    own: dict[type[BaseException], ExitCode] = {StillWorkingError: ExitCode.DRAIN_TIMEOUT, **daemon.exit_codes}
    return error, exit_code_for(error, own)


def _end(code: ExitCode) -> int:
    """The end of the process. Threads that hang, on a dead disk for example, must not keep it."""
    others = [one for one in threading.enumerate() if one is not threading.main_thread() and not one.daemon]
    if others:
        log.warning("threads still run and are left behind threads=%s", ",".join(one.name for one in others))
        sys.stderr.flush()
        os._exit(code)
    return int(code)
