"""Defines the form of an event, CloudEvents 1.0 as JSON; `run_data` and `order_data` define its `data`."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Union, cast

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model

from pipeline.events import order_data, run_data

TYPES: Final = {
    data.NAME: data
    for module in (run_data, order_data)
    for data in vars(module).values()
    if isinstance(data, type) and issubclass(data, run_data.Data) and data.NAME
}
"""What is in `data` by the short name of the type: `redfirst.NAME.v1` is the whole one."""


class Event(BaseModel):
    """An event of any type."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    specversion: Literal["1.0"] = "1.0"
    id: str
    source: str
    type: str
    time: str
    subject: str
    workflow: str
    workflowversion: str
    data: Any

    def __str__(self) -> str:
        """Return it as one line of JSON: the same bytes whenever it is read."""
        return self.model_dump_json(ensure_ascii=True)


def full(name: str) -> str:
    """Return the whole type of a short name."""
    return f"redfirst.{name}.v1"


def checked() -> TypeAdapter[Any]:
    """Return what reads an event of any type, and has the schema of them all."""
    models = [
        create_model(f"{data.__name__}Event", __base__=Event, __doc__=data.__doc__, type=(kind, ...), data=(data, ...))
        for data, kind in ((data, cast("Any", Literal[full(name)])) for name, data in TYPES.items())
    ]
    any_of_them = cast("Any", Union)[tuple(models)]  # of a list that is not known beforehand
    return TypeAdapter(cast("Any", Annotated)[any_of_them, Field(discriminator="type")])
