# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Rules for names, labels and annotations, and the names that the server makes up."""

from __future__ import annotations

import random
import re
import typing as t

from . import field_errors as fe
from .json_text import Json
from .selectors import is_label_value, is_qualified_name

SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH = 5
MAX_GENERATED = 63

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")

LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_KEY_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_LABEL_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def generated_name(base: str, source: random.Random) -> str:
    """A name from ``generateName``: the base cut to 58 characters and five random ones."""
    suffix = "".join(source.choice(SUFFIX_ALPHABET) for _unused in range(SUFFIX_LENGTH))
    return base[: MAX_GENERATED - SUFFIX_LENGTH] + suffix


def label_errors(field: str, value: str) -> list[fe.FieldError]:
    """What is wrong with a DNS label."""
    errors = []
    if len(value) > 63:
        errors.append(fe.invalid(field, value, "must be no more than 63 bytes"))
    if not _LABEL.match(value):
        errors.append(fe.invalid(field, value, LABEL_TEXT))
    return errors


def subdomain_errors(field: str, value: str) -> list[fe.FieldError]:
    """What is wrong with a DNS subdomain."""
    errors = []
    if len(value) > 253:
        errors.append(fe.invalid(field, value, "must be no more than 253 bytes"))
    if not _SUBDOMAIN.match(value):
        errors.append(fe.invalid(field, value, SUBDOMAIN_TEXT))
    return errors


def driver_errors(field: str, value: str) -> list[fe.FieldError]:
    """What is wrong with a driver name."""
    if not value:
        return [fe.required(field)]
    errors = [fe.too_long(field, 63)] if len(value) > 63 else []
    return errors + subdomain_errors(field, value.lower())


def pool_errors(field: str, value: str) -> list[fe.FieldError]:
    """What is wrong with a pool name: subdomains separated by slashes."""
    if not value:
        return [fe.required(field)]
    errors = [fe.too_long(field, 253)] if len(value) > 253 else []
    for part in value.split("/"):
        errors += subdomain_errors(field, part)
    return errors


def metadata_errors(metadata: Json, namespaced: bool, label_name: bool) -> list[fe.FieldError]:
    """What is wrong with an object's metadata. ``label_name``: the name must be a label (namespaces)."""
    errors = []
    check = label_errors if label_name else subdomain_errors
    if "generateName" in metadata:
        errors += check("metadata.generateName", metadata["generateName"].rstrip("-."))
    name = metadata.get("name", "")
    if not name:
        errors.append(fe.required("metadata.name", "name or generateName is required"))
    else:
        errors += check("metadata.name", name)
    if namespaced and not metadata.get("namespace"):
        errors.append(fe.required("metadata.namespace"))
    if not namespaced and metadata.get("namespace"):
        errors.append(fe.forbidden("metadata.namespace", "not allowed on this type"))
    errors += _label_and_annotation_errors(metadata)
    for index, owner in enumerate(metadata.get("ownerReferences") or ()):
        errors += _owner_errors(f"metadata.ownerReferences[{index}]", owner)
    controllers = [owner for owner in metadata.get("ownerReferences") or () if owner.get("controller")]
    if len(controllers) > 1:
        text = 'Only one reference can have Controller set to true. Found "true" in references for {} and {}'
        kinds = [f"{owner.get('kind')}/{owner.get('name')}" for owner in controllers]
        errors.append(fe.invalid("metadata.ownerReferences", controllers, text.format(kinds[0], kinds[1])))
    for index, finalizer in enumerate(metadata.get("finalizers") or ()):
        if not is_qualified_name(finalizer):
            errors.append(fe.invalid(f"metadata.finalizers[{index}]", finalizer, _LABEL_KEY_TEXT))
    return errors


def _label_and_annotation_errors(metadata: Json) -> list[fe.FieldError]:
    errors = []
    for key, value in (metadata.get("labels") or {}).items():
        if not is_qualified_name(key):
            errors.append(fe.invalid("metadata.labels", key, _LABEL_KEY_TEXT))
        if not is_label_value(value):
            errors.append(fe.invalid("metadata.labels", value, _LABEL_VALUE_TEXT))
    for key in metadata.get("annotations") or {}:
        if not is_qualified_name(key.lower()):
            errors.append(fe.invalid("metadata.annotations", key, _LABEL_KEY_TEXT))
    size = sum(len(key) + len(value) for key, value in (metadata.get("annotations") or {}).items())
    if size > 256 * 1024:
        errors.append(fe.too_long("metadata.annotations", 256 * 1024))
    return errors


def _owner_errors(field: str, owner: Json) -> list[fe.FieldError]:
    errors = []
    for name in ("apiVersion", "kind", "name", "uid"):
        if not owner.get(name):
            detail = "version must not be empty" if name == "apiVersion" else f"{name} must not be empty"
            errors.append(fe.invalid(f"{field}.{name}", owner.get(name, ""), detail))
    return errors


def immutable_errors(new: t.Mapping[str, t.Any], old: t.Mapping[str, t.Any]) -> list[fe.FieldError]:
    """Metadata that an update must not change."""
    names = ("name", "namespace", "uid", "creationTimestamp")
    return [
        fe.invalid(f"metadata.{name}", new.get(name, ""), "field is immutable")
        for name in names
        if new.get(name) != old.get(name)
    ]
