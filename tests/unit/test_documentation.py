# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the modules say of themselves, compared with what they take and what they return.

Reading and merging the documentation is left to ``ansible-doc``, judging the options of examples to the validator that
every module uses.
"""

from __future__ import annotations

import importlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import types
import typing as t

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ModuleArgumentSpecValidator
from ansible.module_utils.common.parameters import DEFAULT_TYPE_VALIDATORS
from ansible.module_utils.testing import patch_module_args
from ansible.parsing.mod_args import ModuleArgsParser
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.cluster import cluster_spec
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.kubelet import kubelet_spec
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.state_file import location_spec

Json = dict[str, t.Any]

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "unit" / "fixtures" / "checkpoint"
MODULES = sorted(path.stem for path in (ROOT / "plugins" / "modules").glob("*.py"))
COMMON_RETURN = {"changed", "failed", "msg"}
"""What every module returns, and Ansible documents once for all of them."""
ADDED_BY_ANSIBLE = {"changed", "diff", "invocation"}

FRAGMENTS: dict[str, t.Callable[[], Json]] = {
    "cluster": cluster_spec,
    "kubelet": kubelet_spec,
    # the fragment of the same name in kubelet.py has that one option
    "state_file": lambda: {name: spec for name, spec in location_spec().items() if name not in kubelet_spec()},
}
WITHOUT_OPTIONS = {"attributes"}


@pytest.fixture(scope="module")
def documented(tmp_path_factory: pytest.TempPathFactory) -> t.Mapping[str, Json]:
    """Module to what ``ansible-doc`` says of it, fragments merged."""
    collections = next(path for path in sys.path if (pathlib.Path(path) / "ansible_collections" / "nodeops").is_dir())
    program = shutil.which("ansible-doc", path=str(pathlib.Path(sys.executable).parent))
    assert program is not None
    done = subprocess.run(
        [program, "--json", "--type", "module", *(f"nodeops.dra.{name}" for name in MODULES)],
        env={
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": collections,
            "ANSIBLE_HOME": str(tmp_path_factory.mktemp("home")),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {name.rpartition(".")[2]: doc for name, doc in json.loads(done.stdout).items()}


def module_of(name: str) -> types.ModuleType:
    """A module as Python sees it."""
    return importlib.import_module(f"ansible_collections.nodeops.dra.plugins.modules.{name}")


class TakenError(Exception):
    """The module has said what it takes."""


def taken(name: str, monkeypatch: pytest.MonkeyPatch) -> Json:
    """The arguments that a module gives to AnsibleModule."""
    module = module_of(name)
    found: Json = {}

    def stop(**given: t.Any) -> t.NoReturn:
        found.update(given)
        raise TakenError

    monkeypatch.setattr(module, "AnsibleModule", stop)
    with pytest.raises(TakenError):
        module.main()
    monkeypatch.undo()
    return found


# Options


def described(option: Json) -> Json:
    """An option of the documentation or of a spec in one shape, suboptions included."""
    kind = option.get("type", "str")
    default = option.get("default")
    inner = option.get("suboptions", option.get("options"))
    return {
        "type": kind,
        "elements": option.get("elements"),
        "required": option.get("required", False),
        "choices": option.get("choices"),
        "aliases": sorted(option.get("aliases", ())),
        "default": default if default is None else DEFAULT_TYPE_VALIDATORS[kind](default),
        "options": None if inner is None else options_of(inner),
    }


def options_of(options: Json) -> Json:
    """`described` for all of some options."""
    return {name: described(option) for name, option in options.items()}


@pytest.mark.parametrize("name", MODULES)
def test_options_are_documented_as_they_are(
    name: str, documented: t.Mapping[str, Json], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert options_of(documented[name]["doc"]["options"]) == options_of(taken(name, monkeypatch)["argument_spec"])


def undescribed(options: Json, place: str = "") -> t.Iterator[str]:
    """Options and suboptions without a word about them."""
    for name, option in options.items():
        if not option.get("description"):
            yield f"{place}{name}"
        yield from undescribed(option.get("suboptions") or {}, f"{place}{name}.")


@pytest.mark.parametrize("name", MODULES)
def test_every_option_is_described(name: str, documented: t.Mapping[str, Json]) -> None:
    assert list(undescribed(documented[name]["doc"]["options"])) == []


def test_every_fragment_is_the_spec_of_the_bridge() -> None:
    found = {path.stem for path in (ROOT / "plugins" / "doc_fragments").glob("*.py")}
    assert found == FRAGMENTS.keys() | WITHOUT_OPTIONS
    for name in found:
        fragment = importlib.import_module(f"ansible_collections.nodeops.dra.plugins.doc_fragments.{name}")
        documentation = yaml.safe_load(fragment.ModuleDocFragment.DOCUMENTATION)
        spec = FRAGMENTS[name]() if name in FRAGMENTS else {}
        assert options_of(documentation["options"]) == options_of(spec), name


@pytest.mark.parametrize("name", MODULES)
def test_credentials_are_never_logged(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for option, spec in taken(name, monkeypatch)["argument_spec"].items():
        if re.search("kubeconfig|key|token|password|secret", option):
            assert "no_log" in spec, option


# Attributes


@pytest.mark.parametrize("name", MODULES)
def test_attributes_are_told_and_true(
    name: str, documented: t.Mapping[str, Json], monkeypatch: pytest.MonkeyPatch
) -> None:
    attributes = documented[name]["doc"]["attributes"]
    assert {"check_mode", "diff_mode", "idempotent", "platform", "action_group"} <= attributes.keys()
    assert all(attribute["description"] for attribute in attributes.values())
    supported = taken(name, monkeypatch).get("supports_check_mode", False)
    assert (attributes["check_mode"]["support"] == "full") == supported
    assert attributes["action_group"]["membership"] == ["nodeops.dra.dra"]
    if name.endswith("_info"):
        assert attributes["diff_mode"]["support"] == "none"


# Examples


def example_tasks(doc: Json) -> list[Json]:
    """The tasks of EXAMPLES."""
    tasks = yaml.safe_load(doc["examples"])
    assert isinstance(tasks, list)
    return tasks


def filled(value: t.Any, spec: Json) -> t.Any:
    """A value with every template replaced by something of the type that it stands for."""
    if isinstance(value, str) and "{{" in value:
        return {"list": [], "dict": {}, "bool": True, "int": 1, "float": 1.0}.get(spec.get("type", "str"), "text")
    if isinstance(value, list):
        inner = {"type": spec.get("elements", "str"), "options": spec.get("options")}
        return [filled(item, inner) for item in value]
    if isinstance(value, dict) and spec.get("options"):
        return {key: filled(item, spec["options"].get(key, {})) for key, item in value.items()}
    return value


@pytest.mark.parametrize("name", MODULES)
def test_examples_use_options_that_exist_with_values_that_are_valid(
    name: str, documented: t.Mapping[str, Json], monkeypatch: pytest.MonkeyPatch
) -> None:
    specs = {f"nodeops.dra.{other}": taken(other, monkeypatch) for other in MODULES}
    used = []
    for task in example_tasks(documented[name]):
        assert task.get("name"), task
        action, arguments, _unused = ModuleArgsParser(task).parse(skip_action_validation=True)
        assert action.count(".") == 2, f"{action} is no full name"
        used.append(action)
        if action in specs:
            given = specs[action]
            rules = {
                rule: given[rule]
                for rule in ("mutually_exclusive", "required_together", "required_one_of", "required_if", "required_by")
                if rule in given
            }
            values = {
                key: filled(value, given["argument_spec"].get(key, {})) for key, value in (arguments or {}).items()
            }
            result = ModuleArgumentSpecValidator(given["argument_spec"], **rules).validate(values)
            assert result.error_messages == [], task["name"]
    assert f"nodeops.dra.{name}" in used


@pytest.mark.parametrize("name", MODULES)
def test_there_is_an_example_for_each_state(
    name: str, documented: t.Mapping[str, Json], monkeypatch: pytest.MonkeyPatch
) -> None:
    state = taken(name, monkeypatch)["argument_spec"].get("state")
    if state is None:
        return
    shown = {
        (task[f"nodeops.dra.{name}"] or {}).get("state", state["default"])
        for task in example_tasks(documented[name])
        if f"nodeops.dra.{name}" in task
    }
    assert shown == set(state["choices"])


@pytest.mark.parametrize("name", MODULES)
def test_what_examples_read_from_a_result_is_returned(name: str, documented: t.Mapping[str, Json]) -> None:
    tasks = example_tasks(documented[name])
    returned = documented[name]["return"]
    registered = {task["register"] for task in tasks if f"nodeops.dra.{name}" in task and "register" in task}
    for task in tasks:
        text = json.dumps(task)
        for variable in registered:
            assert set(re.findall(rf"\b{variable}\.(\w+)", text)) <= returned.keys() | COMMON_RETURN, task["name"]
        loop = re.fullmatch(r"{{ (\w+)\.(\w+) }}", task.get("loop", ""))
        if loop is not None and loop.group(1) in registered:
            items = returned[loop.group(2)]["contains"].keys()
            assert set(re.findall(r"\bitem\.(\w+)", text)) <= items, task["name"]


# What is returned

TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "list": (list,),
    "dict": (dict,),
}


def wrong(value: t.Any, doc: Json, place: str) -> t.Iterator[str]:
    """How a returned value differs from its documentation, all the way down."""
    if value is None:
        told = " ".join([doc["description"]] if isinstance(doc["description"], str) else doc["description"])
        if not re.search(r"\bnull\b", told, re.IGNORECASE):
            yield f"{place} is null, which its description does not mention"
        return
    if not isinstance(value, TYPES[doc["type"]]) or (isinstance(value, bool) and doc["type"] != "bool"):
        yield f"{place} is {type(value).__name__}, documented as {doc['type']}"
        return
    for number, item in enumerate(value if doc["type"] == "list" else ()):
        inner = {"type": doc["elements"], "description": "", "contains": doc.get("contains")}
        yield from wrong(item, inner, f"{place}[{number}]")
    if doc["type"] == "dict" and doc.get("contains"):
        yield from differences(value, doc["contains"], place)


def differences(value: Json, docs: Json, place: str = "") -> t.Iterator[str]:
    """How a returned dictionary differs from the documentation of its keys."""
    for key in sorted(value.keys() - docs.keys()):
        yield f"{place}.{key} is not documented"
    for key, doc in docs.items():
        if key in value:
            yield from wrong(value[key], doc, f"{place}.{key}")
        elif doc["returned"] in ("always", "success"):
            yield f"{place}.{key} is documented as {doc['returned']} returned"


def samples(docs: Json, place: str = "") -> t.Iterator[str]:
    """Samples that are missing or do not fit what they are samples of."""
    for key, doc in docs.items():
        if "sample" in doc:
            yield from wrong(doc["sample"], doc, f"{place}.{key}")
        elif not doc.get("contains"):
            yield f"{place}.{key} has no sample"
        yield from samples(doc.get("contains") or {}, f"{place}.{key}")


@pytest.mark.parametrize("name", MODULES)
def test_samples_are_what_they_are_samples_of(name: str, documented: t.Mapping[str, Json]) -> None:
    assert list(samples(documented[name]["return"])) == []


def result_of(name: str, options: Json, documentation: Json, capsys: pytest.CaptureFixture[str]) -> Json:
    """What a module returns when a diff is wanted, without what Ansible adds."""
    with patch_module_args({**options, "_ansible_diff": True}), pytest.raises(SystemExit):
        module_of(name).main()
    told: Json = json.loads(capsys.readouterr().out)
    assert not told.get("failed"), told
    assert ("diff" in told) == (documentation["doc"]["attributes"]["diff_mode"]["support"] == "full")
    return {key: value for key, value in told.items() if key not in ADDED_BY_ANSIBLE}


SEEN = {
    "sound": ("dra_manager_state", "1.35-1.36/multi_driver.json"),
    "with share ID": ("dra_manager_state", "1.35-1.36/share_id.json"),
    "null pods": ("dra_manager_state", "1.35-1.36/pods_nil.json"),
    "devices outstanding": ("dra_manager_state", "1.35-1.36/no_devices_null_list.json"),
    "old": ("dra_manager_state", "1.30/structured_named.json"),
    "old, no devices": ("dra_manager_state", "1.30/no_devices_nil.json"),
    "checksum": ("dra_manager_state", "damaged/1.35-1.36/bad_checksum_zero.json"),
    "cut": ("dra_manager_state", "damaged/1.35-1.36/truncated_half.json"),
    "zeros": ("dra_manager_state", "damaged/1.30/zero_filled_whole.json"),
    "wrong type": ("dra_manager_state", "damaged/1.35-1.36/wrong_type_pods_list.json"),
    "health": ("dra_health_state", "health/1.36/health_driver_without_devices.json"),
    "nvidia": ("checkpoint.json", "nvidia/gpu.nvidia.com/main-2026-08-07/forty_claims.json"),
    "example driver": ("checkpoint.json", "dra-example-driver/v0.1-v0.2/four_claims_mixed.json"),
    "example driver, new": ("checkpoint.json", "dra-example-driver/v0.3-v0.4/odd_uid.json"),
}


@pytest.mark.parametrize("case", SEEN)
def test_checkpoint_info_returns_what_it_documents(
    case: str, tmp_path: pathlib.Path, documented: t.Mapping[str, Json], capsys: pytest.CaptureFixture[str]
) -> None:
    name, source = SEEN[case]
    (tmp_path / name).write_bytes((FIXTURES / source).read_bytes())
    docs = documented["checkpoint_info"]["return"]
    returned = result_of("checkpoint_info", {"path": str(tmp_path / name)}, documented["checkpoint_info"], capsys)
    assert list(differences(returned, docs)) == []
    for condition, wanted in (
        ("when RV(kind) is V(dra_manager_state)", returned["kind"] == "dra_manager_state"),
        ("when RV(kind) is not V(dra_manager_state)", returned["kind"] != "dra_manager_state"),
    ):
        of_this_kind = {key for key, doc in docs.items() if doc["returned"] == condition}
        assert of_this_kind & returned.keys() == (of_this_kind if wanted else set())


def test_checkpoint_info_returns_what_it_documents_without_a_file(
    tmp_path: pathlib.Path, documented: t.Mapping[str, Json], capsys: pytest.CaptureFixture[str]
) -> None:
    returned = result_of("checkpoint_info", {"kubelet_root": str(tmp_path)}, documented["checkpoint_info"], capsys)
    assert list(differences(returned, documented["checkpoint_info"]["return"])) == []


@pytest.mark.parametrize("check", [True, False], ids=["check", "real"])
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="repaired"),
        pytest.param({"state": "converted", "target_version": "1.30"}, id="converted"),
        pytest.param({"state": "converted", "target_version": "1.36"}, id="nothing to do"),
        pytest.param({"state": "restored"}, id="restored"),
        pytest.param({"state": "restored", "target_version": "1.27"}, id="restored for another release"),
        pytest.param({"state": "absent"}, id="absent"),
        pytest.param({"drop_claims": [{"namespace": "default"}]}, id="claims dropped"),
    ],
)
def test_checkpoint_returns_what_it_documents(
    options: Json,
    check: bool,
    tmp_path: pathlib.Path,
    documented: t.Mapping[str, Json],
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "dra_manager_state"
    source = "1.35-1.36/multi_driver.json" if options.get("state") == "converted" else SEEN["cut"][1]
    file.write_bytes((FIXTURES / source).read_bytes())
    for name, copy in (("20260101T000000Z", "1.27/one_claim_one_device.json"), ("20260102T000000Z", SEEN["sound"][1])):
        (tmp_path / f"dra_manager_state.{name}.bak").write_bytes((FIXTURES / copy).read_bytes())
    given = {"path": str(file), **options, "_ansible_check_mode": check}
    returned = result_of("checkpoint", given, documented["checkpoint"], capsys)
    docs = documented["checkpoint"]["return"]
    assert list(differences(returned, docs)) == []
    when_restored = {key for key, doc in docs.items() if doc["returned"] == "when O(state=restored)"}
    assert when_restored
    assert when_restored & returned.keys() == (when_restored if options.get("state") == "restored" else set())


@pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param("claim_info", {}, id="claim_info"),
        pytest.param("driver_info", {}, id="driver_info"),
        pytest.param(
            "claim",
            {"state": "unprepared", "claims": [{"metadata": {"uid": "u", "namespace": "n", "name": "c"}}]},
            id="claim",
        ),
    ],
)
def test_the_other_modules_return_what_they_document(
    name: str,
    options: Json,
    tmp_path: pathlib.Path,
    documented: t.Mapping[str, Json],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On a node where nothing is; what is in their lists, the tests of their layers tell."""
    (tmp_path / "plugins_registry").mkdir()
    (tmp_path / "cdi").mkdir()
    given = {"kubelet_root": str(tmp_path), **options}
    if name != "driver_info":
        given |= {"state_directory": str(tmp_path / "state"), "cdi_directories": [str(tmp_path / "cdi")]}
    returned = result_of(name, given, documented[name], capsys)
    assert list(differences(returned, documented[name]["return"])) == []
