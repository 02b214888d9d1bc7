# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Settings: the file, the environment, and what is said about what is wrong with them."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import typing as t

import hypothesis
import hypothesis.strategies as st
import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.common_settings import (
    HttpSettings,
    LifeSettings,
    LogSettings,
    daemon_schema,
)
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.exit_codes import ExitCode, exit_code_for
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.problems import SettingsError
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.schema import Schema, schema_faults, settings_of
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.settings import (
    Settings,
    changed,
    default_settings,
    load_settings,
)
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.settings_guide import settings_rst
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.settings_text import read_document

NAME = "nodeops-dra-agent"
OWN: dict[str, Schema] = {
    "node": {
        "type": "object",
        "description": "The node.",
        "additionalProperties": False,
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "minLength": 1, "description": "Its name."},
            "password": {"type": "string", "default": "x", "x-secret": True, "maxLength": 8, "description": "One."},
            "drivers": {
                "type": "array",
                "items": {"type": "string"},
                "default": [],
                "examples": [["gpu.example.com"]],
                "description": "Their names.",
            },
            "ratio": {
                "type": "number",
                "default": 0.5,
                "x-unit": "parts of one",
                "x-less-than": "limit",
                "description": "A ratio.",
            },
            "limit": {"type": "number", "default": 1, "x-unit": "parts of one", "description": "Its limit."},
            "map": {
                "type": ["string", "null"],
                "default": None,
                "x-file": True,
                "examples": ["/etc/map"],
                "description": "A file.",
            },
        },
    }
}
SCHEMA = daemon_schema("Settings of the agent", OWN, http_port=9440)


#: What YAML texts are made of.
PIECES = [
    *"a1:-[]{}&*!|>'\"#\n\t %@`,?=<~.", "log", "\n  ", ": ", "- ", "!!int ", "!!float ", "!!bool ", "!!null ",
    "!!binary ", "!!set", "<<: ", "*a", "&a ", "0x", "1_", ".nan", "2001-01-01", "\x00", "\u2028", "---\n", "...\n",
    "%YAML 9.9\n",
]  # fmt: skip


class Load(t.Protocol):
    def __call__(self, text: str, **variables: str) -> Settings: ...


@pytest.fixture
def load(tmp_path: pathlib.Path) -> Load:
    """Settings from a text and variables."""

    def from_text(text: str, **variables: str) -> Settings:
        (tmp_path / "agent.yml").write_text(text)
        return load_settings(SCHEMA, NAME, str(tmp_path / "agent.yml"), variables)

    return from_text


def problems(load: Load, text: str, **variables: str) -> list[str]:
    """Every problem, without the folder of the file."""
    with pytest.raises(SettingsError) as caught:
        load(text, **variables)
    assert exit_code_for(caught.value, {}) is ExitCode.SETTINGS
    folder = os.path.dirname(caught.value.facts["file"]) + "/"
    return [str(problem).replace(folder, "") for problem in caught.value.problems]


def test_what_is_absent_has_its_default(load: Load) -> None:
    settings = load("node: {name: a}\nlog:\n  level: debug\nhttp:\n  # port: 1\n")
    assert settings.section(LogSettings, "log") == LogSettings("debug", "text", {}, 5, 60.0)
    http = settings.section(HttpSettings, "http")
    assert (http.port, http.address, http.tls.key_file) == (9440, "127.0.0.1", None)
    assert settings.section(LifeSettings, "life").drain_timeout == 25.0


def test_lists_become_tuples_in_a_dataclass(load: Load) -> None:
    @dataclasses.dataclass(frozen=True)
    class Node:
        name: str
        password: str
        drivers: tuple[str, ...]
        ratio: float
        limit: float
        map: str | None

    # get_type_hints looks for names of a local class in the module only.
    hints = {"name": str, "password": str, "drivers": tuple[str, ...], "ratio": float, "limit": float, "map": str}
    Node.__annotations__ = hints
    node = load("node: {name: a, drivers: [b], limit: 2}").section(Node, "node")
    assert node == Node("a", "x", ("b",), 0.5, 2.0, None)
    with pytest.raises(TypeError, match="the settings have"):
        load("node: {name: a}").section(LogSettings, "node")


def test_every_problem_is_told_at_once_with_line_key_found_and_expected(load: Load) -> None:
    text = """\
node:
  drivers: gpu.example.com
  nmae: a
log:
  level: verbos
  repeat_burst: 0
http:
  prot: 1
  port: "80"
  tls:
    key_file: key.pem
prot: 9
"""
    assert problems(load, text) == [
        "agent.yml line 1: node.name: found nothing, expected a value. Its name.",
        "agent.yml line 2: node.drivers: found 'gpu.example.com', expected a list.",
        "agent.yml line 3: node.nmae: found an unknown key, expected a key that is known. Did you mean node.name?",
        "agent.yml line 5: log.level: found 'verbos', expected one of debug, info, warning, error.",
        "agent.yml line 6: log.repeat_burst: found 0, expected at least 1 lines.",
        "agent.yml line 8: http.prot: found an unknown key, expected a key that is known. Did you mean http.port?",
        "agent.yml line 9: http.port: found '80', expected a whole number.",
        "agent.yml line 10: http.tls.certificate_file: found nothing, expected a value. http.tls.key_file needs it. "
        "The certificate and its chain, PEM. Absent: plain HTTP.",
        "agent.yml line 11: http.tls.key_file: found 'key.pem', expected an absolute path.",
        "agent.yml line 12: prot: found an unknown key, expected a key that is known. Did you mean http.port?",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "node:\n  name: a\n  ratio: 1\n",
            "agent.yml line 3: node.ratio: found 1, expected less than node.limit, which is 1. A ratio.",
        ),
        (
            "node:\n  name: a\n  limit: 0.25\n",
            "agent.yml line 1: node.ratio: found 0.5, expected less than node.limit, which is 0.25. A ratio.",
        ),
    ],
    ids=["its-own-value", "its-default"],
)
def test_numbers_that_contradict_each_other_are_told(load: Load, text: str, problem: str) -> None:
    assert problems(load, text) == [problem]


def test_files_are_looked_for_when_they_are_asked_for(load: Load, tmp_path: pathlib.Path) -> None:
    load(f"node: {{name: a, map: {tmp_path}/map}}")
    file = str(tmp_path / "agent.yml")

    def told() -> str:
        with pytest.raises(SettingsError) as caught:
            load_settings(SCHEMA, NAME, file, {}, with_files=True)
        return str(caught.value.problems[0]).replace(f"{tmp_path}/", "")

    found = "agent.yml line 1: node.map: found map, which {}, expected a file that can be read. A file."
    assert told() == found.format("does not exist")
    (tmp_path / "map").mkdir()
    assert told() == found.format("is no file")
    (tmp_path / "map").rmdir()
    (tmp_path / "map").touch()
    assert load_settings(SCHEMA, NAME, file, {}, with_files=True).value(("node", "map")) == str(tmp_path / "map")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("node: [\n", "agent.yml line 2: found no valid YAML (while parsing a flow node expected the node content, but "
         "found ...), expected YAML."),
        ("- a\n", "agent.yml line 1: found a list, expected key: value lines."),
        ("just text\n", "agent.yml line 1: found a single value, expected key: value lines."),
        ("node: {name: a}\nnode: {name: b}\n", "agent.yml line 2: node: found the key a second time, expected each key "
         "once. It is on line 1."),
        ("node: {name: !!python/object:os.system a}\n", "agent.yml line 1: node.name: found a value with a tag, "
         "expected a value without a tag (!...)."),
        ("node: {name: a}\n? [a]\n: b\n", "agent.yml line 2: found a list as a key, expected text as a key."),
        ("a: 1\n---\nb: 1\n", "agent.yml line 2: found no valid YAML (expected a single document in the stream but "
         "found another document), expected YAML."),
        ("a: " + "[" * 3000, "agent.yml: found values nested too deeply, expected a settings file."),
        ("a: \0", "agent.yml line 1: found a character that YAML forbids, expected YAML."),
    ],
    ids=["syntax", "list", "text", "twice", "tag", "list-as-key", "two-documents", "deep", "nul"],
)  # fmt: skip
def test_a_broken_file_is_told_with_its_line(load: Load, text: str, problem: str) -> None:
    assert problems(load, text) == [problem]


def test_aliases_cannot_blow_up_the_memory(load: Load) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert problems(load, "\n".join(lines)) == [
        "agent.yml: found more than 20000 values, expected a settings file. Look for aliases (*name)."
    ]


@pytest.mark.parametrize("value", [".inf", "-.inf", ".nan", "!!float ''", "!!int x"])
def test_only_real_numbers_are_numbers(load: Load, value: str) -> None:
    (problem,) = problems(load, f"node: {{name: a}}\nlife:\n  drain_timeout: {value}\n")
    assert problem.startswith("agent.yml line 3: life.drain_timeout: found a value that is no ")


@hypothesis.given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text(max_size=60))
@hypothesis.example("!!bool maybe")
def test_any_text_is_read_or_told(text: str) -> None:
    document = read_document(text, "agent.yml")
    assert isinstance(document.values, dict)
    assert all(str(problem).startswith("agent.yml") for problem in document.problems)


def test_text_that_yaml_would_read_as_something_else_stays_text(load: Load) -> None:
    for text in ("2026-01-01", "12:30:45"):
        assert load(f"node: {{name: {text}}}").value(("node", "name")) == text


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "bytes", "large"])
def test_a_file_that_cannot_be_read_is_told_without_waiting(tmp_path: pathlib.Path, kind: str) -> None:
    path = tmp_path / "agent.yml"
    if kind == "folder":
        path.mkdir()
    if kind == "pipe":
        os.mkfifo(path)
    if kind == "bytes":
        path.write_bytes(b"node:\n  name: \xff\n")
    if kind == "large":
        path.write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises(DraError) as caught:
        load_settings(SCHEMA, NAME, str(path), {})
    expected = {"missing": "No such file", "bytes": "line 2: found bytes that are no UTF-8"}
    assert expected.get(kind, str(path)) in str(caught.value)


# Environment


def test_variables_go_before_the_file(load: Load) -> None:
    settings = load(
        "node: {name: a}\nhttp: {port: 1}\nlog:\n",
        NODEOPS_DRA_AGENT_NODE_NAME="123",
        NODEOPS_DRA_AGENT_HTTP_PORT="2",
        NODEOPS_DRA_AGENT_HTTP_ENABLED="false",
        NODEOPS_DRA_AGENT_HTTP_TLS_KEY_FILE="",
        NODEOPS_DRA_AGENT_NODE_DRIVERS="a.example.com, b.example.com",
        NODEOPS_DRA_AGENT_LOG_LEVELS="{kube: debug}",
        HOME="/root",
    )
    assert settings.values["node"]["name"] == "123"
    assert settings.values["http"]["port"] == 2
    assert settings.values["http"]["enabled"] is False
    assert settings.values["http"]["tls"]["key_file"] is None
    assert settings.values["node"]["drivers"] == ["a.example.com", "b.example.com"]
    assert settings.values["log"]["levels"] == {"kube": "debug"}


def test_problems_of_variables_name_the_variable(load: Load) -> None:
    found = problems(
        load,
        "node: {name: a}\n",
        NODEOPS_DRA_AGENT_HTTP_PORT="many",
        NODEOPS_DRA_AGENT_LOG_LEVEL_="info",
        NODEOPS_DRA_AGENT_LOG_LEVELS="{",
    )
    assert found == [
        "environment variable NODEOPS_DRA_AGENT_HTTP_PORT: http.port: found 'many', expected a whole number.",
        "environment variable NODEOPS_DRA_AGENT_LOG_LEVELS: log.levels: found text that is no YAML value, expected a "
        "value on one line.",
        "environment variable NODEOPS_DRA_AGENT_LOG_LEVEL_: found a variable of no setting, expected a variable that "
        "is known. Did you mean NODEOPS_DRA_AGENT_LOG_LEVEL?",
    ]


def test_variables_that_kubernetes_makes_for_a_service_are_no_settings(load: Load) -> None:
    variables = {
        "NODEOPS_DRA_AGENT_SERVICE_HOST": "10.0.0.1",
        "NODEOPS_DRA_AGENT_SERVICE_PORT_METRICS": "9440",
        "NODEOPS_DRA_AGENT_PORT": "tcp://10.0.0.1:9440",
        "NODEOPS_DRA_AGENT_PORT_9440_TCP_ADDR": "10.0.0.1",
    }
    assert load("node: {name: a}", **variables).values["http"]["port"] == 9440


@pytest.mark.report("F082")
def test_secrets_are_in_no_message(load: Load) -> None:
    texts = [
        "node: {name: a, password: SECRET-SYNTH-1}",
        "node: {name: a, password: [SECRET-SYNTH-1]}",
        "node: {name: a, password: &SECRET-SYNTH-1 x y: z}",
        "node: {name: a, password: *SECRET-SYNTH-1}",
        "node: SECRET-SYNTH-1",
        "node: {name: a}\nhttp: {token_file: 'https://u:SECRET-SYNTH-1@h/'}",
        "node: {name: a, passwort: SECRET-SYNTH-1}",
    ]
    for text in texts:
        with pytest.raises(SettingsError) as caught:
            load(text)
        assert "SECRET" not in f"{caught.value}{caught.value.facts}", text
    with pytest.raises(SettingsError) as caught:
        load("node: {name: a}", NODEOPS_DRA_AGENT_NODE_PASSWORD="SECRET-SYNTH-1")
    assert "SECRET" not in f"{caught.value}{caught.value.facts}"
    assert "SECRET" not in repr(load("node: {name: a, password: SECRET-1}"))


def test_a_variable_does_not_hide_a_section_that_is_none(load: Load) -> None:
    found = problems(load, "node: {name: a}\nhttp: 5\n", NODEOPS_DRA_AGENT_HTTP_PORT="1")
    assert found == ["agent.yml line 2: http: found 5, expected a mapping."]


# Reload


def test_a_reload_applies_what_needs_no_restart_and_lists_the_rest(load: Load) -> None:
    old = load("node: {name: a}")
    new = load("node: {name: b}\nlog: {level: debug}\nlife: {drain_timeout: 1, run_directory: /x}")
    effective, change = changed(old, new)
    assert [setting.key for setting in change.applied] == ["log.level", "life.drain_timeout"]
    assert [setting.key for setting in change.pending] == ["node.name", "life.run_directory"]
    assert (effective.values["node"]["name"], effective.values["log"]["level"]) == ("a", "debug")
    assert old.values["log"]["level"] == "info"
    assert changed(effective, new)[1].pending == change.pending


# The schema


def test_every_common_setting_is_documented() -> None:
    assert schema_faults(SCHEMA) == []


@pytest.mark.parametrize(
    ("setting", "fault"),
    [
        ({"type": "string", "default": "x"}, "no description, or none that ends with a full stop"),
        ({"type": "string", "description": "A."}, "neither a default nor required"),
        ({"type": "integer", "default": 1, "description": "A."}, "a number without x-unit"),
        ({"type": "string", "default": 1, "description": "A."}, "its default is not valid"),
        ({"type": "array", "default": [], "description": "A."}, "no default that shows how a value looks, and no "
         "examples"),
        ({"type": "string", "default": "/x", "pattern": "^/", "description": "A."}, "a pattern without x-expected"),
        ({"type": "array", "default": [], "examples": [1], "description": "A."}, "its example 1 is not valid"),
        ({"type": "array", "default": ["x"], "description": "A.", "items": {"properties": {}}}, "mappings inside it, "
         "whose keys would have no documentation, default or variable"),
    ],
)  # fmt: skip
def test_an_undocumented_setting_is_found(setting: Schema, fault: str) -> None:
    assert schema_faults(daemon_schema("x", {"mine": setting}, http_port=1)) == [f"mine: {fault}"]


def test_an_order_without_the_other_setting_is_found() -> None:
    number = {"type": "number", "default": 1, "x-unit": "parts", "x-less-than": "most", "description": "A."}
    fault = "least: it is less than most, and one of them has no default"
    assert schema_faults(daemon_schema("x", {"least": number}, http_port=1)) == [fault]


def test_settings_with_one_variable_are_found() -> None:
    number = {"type": "string", "default": "1", "description": "A."}
    section = {"type": "object", "description": "A.", "additionalProperties": False, "properties": {"b": number}}
    schema = daemon_schema("x", {"a_b": number, "a": section}, http_port=1)
    assert schema_faults(schema) == ["a.b: its environment variable is also that of a_b"]
    schema = daemon_schema("x", {"port": number}, http_port=1)
    assert "Kubernetes sets its environment variable" in schema_faults(schema)[0]
    with pytest.raises(ValueError, match="log belongs to both"):
        daemon_schema("x", {"log": number}, http_port=1)


def test_the_guide_has_every_setting() -> None:
    guide = settings_rst(SCHEMA, NAME)
    for setting in settings_of(SCHEMA):
        assert f"``{setting.key}``" in guide
        assert f"``NODEOPS_DRA_AGENT_{setting.variable}``" in guide
    assert "Takes effect on reload." in guide
    assert "Less than ``node.limit``." in guide
    assert "integer (TCP port). Default: ``9440``. At least 0. At most 65535." in guide


def test_the_guide_is_valid_rst() -> None:
    docutils = pytest.importorskip("docutils.core")
    docutils.publish_string(settings_rst(SCHEMA, NAME), settings_overrides={"halt_level": 2, "report_level": 2})


def test_defaults_alone_are_settings() -> None:
    schema = daemon_schema("x", {}, http_port=1)
    assert default_settings(schema).section(HttpSettings, "http").port == 1
