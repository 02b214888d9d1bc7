# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Kubeconfig files: several merged by kubectl's rules, one context picked, its cluster and user understood."""

from __future__ import annotations

import base64
import binascii
import os
import typing as t
import urllib.parse

from .access import ClusterAccess, Pem, server_url
from .credentials import BasicAuth, Credential, NoCredential, StaticToken, TokenFile
from .errors import ConfigurationError
from .exec_plugin import ExecPlugin
from .secrets import Secrets

_SECTIONS = ("clusters", "contexts", "users")
#: Fields that name files; relative ones are meant from the file that holds them.
_PATHS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


class Kubeconfig:
    """The merged content of one or several files. ``origin`` names them for texts."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.current_context = ""
        self.sections: dict[str, dict[str, dict[str, t.Any]]] = {section: {} for section in _SECTIONS}

    def merge(self, data: object, folder: str, place: str) -> None:
        """Add a file's content. What an earlier file said stays, as with kubectl."""
        if not isinstance(data, dict):
            raise ConfigurationError(f"{place} is no kubeconfig: it holds no mapping.", "Give another file.")
        self.current_context = self.current_context or str(data.get("current-context") or "")
        for section in _SECTIONS:
            entries = data.get(section) or []
            if not isinstance(entries, list):
                raise _malformed(place, section, "a list")
            for index, entry in enumerate(entries):
                name = entry.get("name") if isinstance(entry, dict) else None
                body = entry.get(section[:-1]) if isinstance(entry, dict) else None
                if not isinstance(name, str) or not isinstance(body or {}, dict):
                    raise _malformed(place, f"{section}[{index}]", f"a mapping with name and {section[:-1]}")
                self.sections[section].setdefault(name, _absolute(body or {}, folder))

    def named(self, section: str, name: str, wanted_by: str) -> dict[str, t.Any]:
        """An entry by its name; raises ``ConfigurationError`` that lists the names there are."""
        found = self.sections[section].get(name)
        if found is None:
            names = ", ".join(sorted(self.sections[section])) or "none"
            raise ConfigurationError(
                f'{self.origin} has no {section[:-1]} "{name}", which {wanted_by} names.',
                f"The {section} in it: {names}.",
                found=sorted(self.sections[section]),
            )
        return found


def load_kubeconfig(
    source: str | t.Mapping[str, t.Any], context: str | None = None, environ: t.Mapping[str, str] | None = None
) -> ClusterAccess:
    """The access that a context means; ``source`` is a path, paths joined by ``:``, or the content as a dict."""
    config = read_kubeconfig(source)
    name = context or config.current_context
    if not name:
        names = ", ".join(sorted(config.sections["contexts"])) or "none"
        raise ConfigurationError(
            f"{config.origin} has no current-context, and no context is given.",
            f"Set context to one of: {names}.",
        )
    chosen = config.named("contexts", name, "the option context" if context else "current-context")
    cluster = config.named("clusters", _text(config, chosen, "cluster"), f'context "{name}"')
    user_name = chosen.get("user")
    user = config.named("users", str(user_name), f'context "{name}"') if user_name else {}
    return _access(config, name, cluster, user, str(chosen.get("namespace") or ""), environ)


def read_kubeconfig(source: str | t.Mapping[str, t.Any]) -> Kubeconfig:
    """The content of a source, merged; raises ``ConfigurationError``."""
    if not isinstance(source, str):
        config = Kubeconfig("the given kubeconfig")
        config.merge(dict(source), os.getcwd(), config.origin)
        return config
    paths = [os.path.abspath(os.path.expanduser(part)) for part in source.split(os.pathsep) if part]
    there = [path for path in paths if os.path.exists(path)]
    if not there:
        raise ConfigurationError(
            f"kubeconfig {source} does not exist.", "Check the path, on the host where this runs.", path=source
        )
    config = Kubeconfig(f"kubeconfig {os.pathsep.join(there)}")
    for path in there:
        config.merge(_read(path), os.path.dirname(path), f"kubeconfig {path}")
    return config


def _read(path: str) -> object:
    import msgspec.yaml

    try:
        with open(path, "rb") as file:
            raw = file.read()
    except OSError as error:
        raise ConfigurationError(
            f"kubeconfig {path} cannot be read: {error.strerror}.", "Check its rights and path.", path=path
        ) from error
    try:
        return msgspec.yaml.decode(raw) if raw.strip() else {}
    except ValueError as error:
        # The parser's own text quotes the line, and the line may hold a token: only the place is told.
        mark = getattr(error.__cause__ or error.__context__, "problem_mark", None)
        place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        raise ConfigurationError(f"kubeconfig {path} is no YAML{place}.", "Correct it there.", path=path) from None


def _absolute(body: t.Mapping[str, t.Any], folder: str) -> dict[str, t.Any]:
    result = dict(body)
    for key in _PATHS:
        if isinstance(result.get(key), str) and result[key]:
            result[key] = os.path.join(folder, os.path.expanduser(result[key]))
    command = result.get("exec")
    if isinstance(command, dict):
        name = command.get("command")
        if isinstance(name, str) and os.sep in name:
            result["exec"] = {**command, "command": os.path.join(folder, name)}
    return result


def _access(
    config: Kubeconfig,
    context: str,
    cluster: t.Mapping[str, t.Any],
    user: t.Mapping[str, t.Any],
    namespace: str,
    environ: t.Mapping[str, str] | None,
) -> ClusterAccess:
    secrets = Secrets()
    return ClusterAccess(
        server_url(_text(config, cluster, "server")),
        f'context "{context}" of {config.origin}',
        _credential(config, cluster, user, secrets, environ),
        ca=_pem(config, cluster, "certificate-authority"),
        client_certificate=_pem(config, user, "client-certificate"),
        client_key=_pem(config, user, "client-key"),
        verify=not cluster.get("insecure-skip-tls-verify", False),
        tls_server_name=cluster.get("tls-server-name") or None,
        proxy=cluster.get("proxy-url") or None,
        headers=tuple(_impersonation(user)),
        namespace=namespace,
        secrets=secrets,
    )


def _impersonation(user: t.Mapping[str, t.Any]) -> t.Iterator[tuple[str, str]]:
    if user.get("as"):
        yield "Impersonate-User", str(user["as"])
    if user.get("as-uid"):
        yield "Impersonate-Uid", str(user["as-uid"])
    for group in user.get("as-groups") or ():
        yield "Impersonate-Group", str(group)
    for key, values in (user.get("as-user-extra") or {}).items():
        for value in values:
            yield f"Impersonate-Extra-{urllib.parse.quote(str(key).lower(), safe='')}", str(value)


def _credential(
    config: Kubeconfig,
    cluster: t.Mapping[str, t.Any],
    user: t.Mapping[str, t.Any],
    secrets: Secrets,
    environ: t.Mapping[str, str] | None,
) -> Credential:
    """The user's credential. A token file wins over a token, as with kubectl."""
    if user.get("tokenFile"):
        return TokenFile(_text(config, user, "tokenFile"), secrets)
    if user.get("token"):
        return StaticToken(_text(config, user, "token"), secrets)
    if user.get("username"):
        return BasicAuth(str(user["username"]), str(user.get("password", "")), secrets)
    if user.get("exec"):
        return ExecPlugin(user["exec"], cluster, secrets, config.origin, environ=environ)
    if user.get("auth-provider"):
        provider = user["auth-provider"]
        kind = provider.get("name") if isinstance(provider, dict) else provider
        raise ConfigurationError(
            f'{config.origin} asks for the auth-provider "{kind!s:.40}", which is not supported.',
            "kubectl dropped these in 1.26: use an exec plugin (such as kubelogin for OIDC), or a token.",
        )
    return NoCredential()


def _pem(config: Kubeconfig, body: t.Mapping[str, t.Any], key: str) -> Pem:
    encoded = body.get(f"{key}-data")
    if encoded:
        try:
            return Pem(data=base64.b64decode("".join(encoded.split()), validate=True))
        except (binascii.Error, ValueError, AttributeError):
            raise ConfigurationError(
                f"{key}-data in {config.origin} is no base64.", "Copy the file again, or name a file with the key."
            ) from None
    path = body.get(key)
    if not path:
        return Pem()
    if not os.path.isfile(str(path)):
        raise ConfigurationError(
            f"{key} in {config.origin} names {path}, which does not exist.",
            "Correct the path; relative ones are meant from the kubeconfig's folder.",
            path=str(path),
        )
    return Pem(str(path))


def _text(config: Kubeconfig, body: t.Mapping[str, t.Any], key: str) -> str:
    value = body.get(key)
    if not isinstance(value, str) or not value:
        raise ConfigurationError(f"{config.origin} has no {key} where one is needed.", f"Add {key}, as text.")
    return value


def _malformed(place: str, path: str, expected: str) -> ConfigurationError:
    return ConfigurationError(f"{place} is malformed: {path} is not {expected}.", "Correct it there.")
