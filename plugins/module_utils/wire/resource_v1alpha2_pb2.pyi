# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
# Types only, made by hack/gen_proto.py: never imported at run time.
# ruff: noqa
# fmt: off
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class VendorParameters(_message.Message):
    __slots__ = ("raw",)
    RAW_FIELD_NUMBER: _ClassVar[int]
    raw: bytes
    def __init__(self, raw: _Optional[bytes] = ...) -> None: ...

class StructuredResourceHandle(_message.Message):
    __slots__ = ("vendorClassParameters", "vendorClaimParameters", "nodeName", "results")
    VENDORCLASSPARAMETERS_FIELD_NUMBER: _ClassVar[int]
    VENDORCLAIMPARAMETERS_FIELD_NUMBER: _ClassVar[int]
    NODENAME_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    vendorClassParameters: VendorParameters
    vendorClaimParameters: VendorParameters
    nodeName: str
    results: _containers.RepeatedCompositeFieldContainer[DriverAllocationResult]
    def __init__(self, vendorClassParameters: _Optional[_Union[VendorParameters, _Mapping[str, object]]] = ..., vendorClaimParameters: _Optional[_Union[VendorParameters, _Mapping[str, object]]] = ..., nodeName: _Optional[str] = ..., results: _Optional[_Iterable[_Union[DriverAllocationResult, _Mapping[str, object]]]] = ...) -> None: ...

class DriverAllocationResult(_message.Message):
    __slots__ = ("vendorRequestParameters", "allocationResultModel")
    VENDORREQUESTPARAMETERS_FIELD_NUMBER: _ClassVar[int]
    ALLOCATIONRESULTMODEL_FIELD_NUMBER: _ClassVar[int]
    vendorRequestParameters: VendorParameters
    allocationResultModel: AllocationResultModel
    def __init__(self, vendorRequestParameters: _Optional[_Union[VendorParameters, _Mapping[str, object]]] = ..., allocationResultModel: _Optional[_Union[AllocationResultModel, _Mapping[str, object]]] = ...) -> None: ...

class AllocationResultModel(_message.Message):
    __slots__ = ("namedResources",)
    NAMEDRESOURCES_FIELD_NUMBER: _ClassVar[int]
    namedResources: NamedResourcesAllocationResult
    def __init__(self, namedResources: _Optional[_Union[NamedResourcesAllocationResult, _Mapping[str, object]]] = ...) -> None: ...

class NamedResourcesAllocationResult(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ResourceModel(_message.Message):
    __slots__ = ("namedResources",)
    NAMEDRESOURCES_FIELD_NUMBER: _ClassVar[int]
    namedResources: NamedResourcesResources
    def __init__(self, namedResources: _Optional[_Union[NamedResourcesResources, _Mapping[str, object]]] = ...) -> None: ...

class NamedResourcesResources(_message.Message):
    __slots__ = ("instances",)
    INSTANCES_FIELD_NUMBER: _ClassVar[int]
    instances: _containers.RepeatedCompositeFieldContainer[NamedResourcesInstance]
    def __init__(self, instances: _Optional[_Iterable[_Union[NamedResourcesInstance, _Mapping[str, object]]]] = ...) -> None: ...

class NamedResourcesInstance(_message.Message):
    __slots__ = ("name", "attributes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    name: str
    attributes: _containers.RepeatedCompositeFieldContainer[NamedResourcesAttribute]
    def __init__(self, name: _Optional[str] = ..., attributes: _Optional[_Iterable[_Union[NamedResourcesAttribute, _Mapping[str, object]]]] = ...) -> None: ...

class NamedResourcesAttribute(_message.Message):
    __slots__ = ("name", "attributeValue")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTEVALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    attributeValue: NamedResourcesAttributeValue
    def __init__(self, name: _Optional[str] = ..., attributeValue: _Optional[_Union[NamedResourcesAttributeValue, _Mapping[str, object]]] = ...) -> None: ...

class NamedResourcesAttributeValue(_message.Message):
    __slots__ = ("bool_value", "string_value", "quantity_value", "int_value", "int_slice_value", "string_slice_value", "version_value")
    BOOL_VALUE_FIELD_NUMBER: _ClassVar[int]
    STRING_VALUE_FIELD_NUMBER: _ClassVar[int]
    QUANTITY_VALUE_FIELD_NUMBER: _ClassVar[int]
    INT_VALUE_FIELD_NUMBER: _ClassVar[int]
    INT_SLICE_VALUE_FIELD_NUMBER: _ClassVar[int]
    STRING_SLICE_VALUE_FIELD_NUMBER: _ClassVar[int]
    VERSION_VALUE_FIELD_NUMBER: _ClassVar[int]
    bool_value: bool
    string_value: str
    quantity_value: Quantity
    int_value: int
    int_slice_value: NamedResourcesIntSlice
    string_slice_value: NamedResourcesStringSlice
    version_value: str
    def __init__(self, bool_value: _Optional[bool] = ..., string_value: _Optional[str] = ..., quantity_value: _Optional[_Union[Quantity, _Mapping[str, object]]] = ..., int_value: _Optional[int] = ..., int_slice_value: _Optional[_Union[NamedResourcesIntSlice, _Mapping[str, object]]] = ..., string_slice_value: _Optional[_Union[NamedResourcesStringSlice, _Mapping[str, object]]] = ..., version_value: _Optional[str] = ...) -> None: ...

class NamedResourcesIntSlice(_message.Message):
    __slots__ = ("ints",)
    INTS_FIELD_NUMBER: _ClassVar[int]
    ints: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, ints: _Optional[_Iterable[int]] = ...) -> None: ...

class NamedResourcesStringSlice(_message.Message):
    __slots__ = ("strings",)
    STRINGS_FIELD_NUMBER: _ClassVar[int]
    strings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, strings: _Optional[_Iterable[str]] = ...) -> None: ...

class Quantity(_message.Message):
    __slots__ = ("string",)
    STRING_FIELD_NUMBER: _ClassVar[int]
    string: str
    def __init__(self, string: _Optional[str] = ...) -> None: ...
