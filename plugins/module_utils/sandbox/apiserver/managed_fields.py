# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Who owns which field: the records in ``metadata.managedFields``, for updates and for server-side apply."""

from __future__ import annotations

import dataclasses
import typing as t

from . import field_sets as fs
from .failures import ApiError, bad_request, details_of
from .json_text import Json
from .shapes import Shape

# Fields that nobody owns.
_SYSTEM = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
    "managedFields",
)


@dataclasses.dataclass(frozen=True)
class Writer:
    """Who writes: manager name, the API version it speaks, the subresource it writes to, and when."""

    manager: str
    api_version: str
    subresource: str
    time: str

    def entry(self, operation: str, fields: fs.FieldSet) -> Json:
        made: Json = {
            "manager": self.manager,
            "operation": operation,
            "apiVersion": self.api_version,
            "time": self.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
        if self.subresource:
            made["subresource"] = self.subresource
        return made

    def owns(self, entry: Json, operation: str) -> bool:
        """Whether an entry is this writer's own."""
        return (
            entry.get("manager") == self.manager
            and entry.get("operation") == operation
            and entry.get("subresource", "") == self.subresource
            and (operation == "Apply" or entry.get("apiVersion") == self.api_version)
        )


def _stripped(value: Json | None) -> Json:
    if value is None:
        return {}
    result = {name: part for name, part in value.items() if name not in ("apiVersion", "kind")}
    metadata = {name: part for name, part in value.get("metadata", {}).items() if name not in _SYSTEM}
    result["metadata"] = metadata
    return result


def _in_order(entries: t.Iterable[Json]) -> list[Json]:
    kept = [entry for entry in entries if entry.get("fieldsV1")]
    return sorted(kept, key=lambda entry: (entry.get("operation", ""), entry.get("time", ""), entry.get("manager", "")))


def after_update(entries: t.Sequence[Json], old: Json | None, new: Json, shape: Shape, writer: Writer) -> list[Json]:
    """The records after a write that is no apply. ``old`` is the object before, or an empty one on creation."""
    changed, removed = fs.changes(_stripped(old), _stripped(new), shape)
    if not changed and not removed:
        return list(entries)
    result = []
    own: fs.FieldSet = {}
    own_time = writer.time
    for entry in entries:
        fields = fs.cut(entry.get("fieldsV1") or {}, removed)
        if writer.owns(entry, "Update"):
            own = fields
            own_time = writer.time if changed else entry.get("time", writer.time)
        else:
            result.append({**entry, "fieldsV1": fs.without(fields, changed)})
    result.append({**writer.entry("Update", fs.merge(own, changed)), "time": own_time})
    return _in_order(result)


def merged(live: t.Any, config: t.Any, shape: Shape) -> t.Any:
    """``live`` with an apply configuration merged in."""
    if isinstance(config, dict) and isinstance(live, dict) and fs.is_split(config, shape):
        result = dict(live)
        for name, value in config.items():
            if value is not None:
                result[name] = merged(live.get(name), value, shape.child(name))
        return result
    if isinstance(config, list) and shape.is_set:
        known = live if isinstance(live, list) else []
        return known + [item for item in config if item not in known]
    if isinstance(config, list) and shape.keys:
        return _merged_items(live if isinstance(live, list) else [], config, shape)
    return config


def _merged_items(live: list[t.Any], config: list[t.Any], shape: Shape) -> list[t.Any]:
    result = list(live)
    places = {fs.item_key(item, shape): index for index, item in enumerate(live)}
    for index, item in enumerate(config):
        missing = [name for name in shape.keys if name not in item and name not in shape.key_defaults]
        if missing and len(missing) == len(shape.keys):
            raise bad_request(
                f"failed to create typed patch object: element {index}: associative list with keys has an element "
                f'that omits key field "{missing[0]}" (and doesn\'t have default value)'
            )
        key = fs.item_key(item, shape)
        if key in places:
            result[places[key]] = merged(result[places[key]], item, shape.items())
        else:
            places[key] = len(result)
            result.append(item)
    return result


def _pruned(value: t.Any, shape: Shape, gone: fs.FieldSet, others: fs.FieldSet) -> t.Any:
    """``value`` without what ``gone`` lists, as far as ``others`` hold nothing there."""
    if isinstance(value, dict):
        result = dict(value)
        for key, below in gone.items():
            name = key[2:]
            if key == "." or name not in result:
                continue
            if key not in others and fs.has_self(below):
                del result[name]
            else:
                result[name] = _pruned(result[name], shape.child(name), below, others.get(key, {}))
        return result
    if isinstance(value, list) and (shape.keys or shape.is_set):
        kept = []
        for item in value:
            key = fs.item_key(item, shape)
            if key not in gone:
                kept.append(item)
            elif key in others or not fs.has_self(gone[key]):
                # The keys of an item stay as long as the item does.
                below = {name: part for name, part in gone[key].items() if name[2:] not in shape.keys}
                kept.append(_pruned(item, shape.items(), below, others.get(key, {})))
        return kept
    return value


def after_apply(
    entries: t.Sequence[Json], live: Json | None, config: Json, shape: Shape, writer: Writer, force: bool
) -> tuple[Json, list[Json]]:
    """The object and its records after an apply. ApiError 409 when others own what it changes and ``force`` is not set.

    ``live`` None creates the object. ``config`` holds only what this subresource may set.
    """
    wanted = _stripped(config)
    if not wanted["metadata"]:
        del wanted["metadata"]
    fields = fs.applied(wanted, shape)
    own = next((entry for entry in entries if writer.owns(entry, "Apply")), None)
    others = [entry for entry in entries if entry is not own]
    base = live if live is not None else {}
    result = t.cast(Json, merged(base, {**wanted, "metadata": config.get("metadata", {})}, shape))
    before = _stripped(live)
    changed, _removed = fs.changes(before, _stripped(result), shape)
    conflicts = [(entry, fs.intersection(entry.get("fieldsV1") or {}, changed)) for entry in others]
    conflicts = [(entry, paths) for entry, paths in conflicts if paths]
    if conflicts and not force:
        raise _conflict(conflicts)
    kept_by_others: fs.FieldSet = {}
    for entry in others:
        kept_by_others = fs.merge(kept_by_others, fs.without(entry.get("fieldsV1") or {}, changed))
    if own is not None:
        gone = fs.without(own.get("fieldsV1") or {}, fields)
        result = t.cast(Json, _pruned(result, shape, gone, kept_by_others))
    changed, removed = fs.changes(before, _stripped(result), shape)
    kept = [
        {**entry, "fieldsV1": fs.without(fs.cut(entry.get("fieldsV1") or {}, removed), changed)} for entry in others
    ]
    unchanged = own is not None and own.get("fieldsV1") == fields and not changed and not removed
    mine = own if own is not None and unchanged else writer.entry("Apply", fields)
    return result, _in_order([*kept, mine])


def _conflict(conflicts: list[tuple[Json, fs.FieldSet]]) -> ApiError:
    causes, texts = [], []
    for entry, paths in conflicts:
        who = f'conflict with "{entry.get("manager")}"'
        if entry.get("subresource"):
            who += f' with subresource "{entry["subresource"]}"'
        if entry.get("operation") == "Update":
            who += f" using {entry.get('apiVersion')}"
        found = [fs.text_of(path) for path in fs.leaves(paths)]
        causes += [{"reason": "FieldManagerConflict", "message": who, "field": path} for path in found]
        texts.append(f"{who}: {found[0]}" if len(found) == 1 else f"{who}:\n" + "\n".join(f"- {p}" for p in found))
    count = f"{len(causes)} conflict" + ("s" if len(causes) > 1 else "")
    joined = texts[0] if len(texts) == 1 else "conflicts " + "\n".join(texts)
    return ApiError(409, "Conflict", f"Apply failed with {count}: {joined}", details_of("", "", causes=causes))
