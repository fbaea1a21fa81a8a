"""checkConstraints. Specification: "CHECK Constraints"."""

from __future__ import annotations

import pytest
from delta_values import make_config

from alluvium.delta.features.columns.check_constraints import (
    FEATURE,
    check_constraints,
    constraint_check,
    enforce,
    is_used,
)
from alluvium.delta.features.registry import WRITE_PASSES, ensure_writable
from alluvium.delta.terms.spec import Protocol
from alluvium.delta.write.write import plan_write
from alluvium.errors import UnsupportedFeature

LISTED = Protocol(min_reader_version=1, min_writer_version=7, writer_features=("checkConstraints",))


def test_each_constraint_is_a_check_of_the_plan():
    """ "Each CHECK constraint has a name and is stored as a key value pair. The key format is
    `delta.constraints.{name}`, and the value is a SQL expression string whose return type must be `Boolean`."

    "every new row being written to the table must satisfy CHECK constraints in the table."
    """
    config = make_config(
        properties={"delta.constraints.pos": "ID > 0", "delta.constraints.a": "p <> 'x'", "other": "1"}
    )
    assert is_used(config)
    assert FEATURE.on_write in WRITE_PASSES
    assert [(c.name, c.sql, c.columns, c.code) for c in plan_write(config, "memory://t").checks] == [
        ("a", "p <> 'x'", ("p",), "constraint-violated"),
        ("pos", "ID > 0", ("id",), "constraint-violated"),
    ]


@pytest.mark.parametrize(
    "protocol", [*(Protocol(min_reader_version=1, min_writer_version=v) for v in (3, 4, 5, 6)), LISTED]
)
def test_the_table_can_be_written(protocol: Protocol):
    """ "If the table is on a Writer Version starting from 3 up to 6, CHECK Constraints are always enabled." "If the
    table is on Writer Version 7, a feature name `checkConstraints` must exist in the table `protocol`'s
    `writerFeatures`."
    """
    config = make_config(properties={"delta.constraints.pos": "id > 0"}, protocol=protocol)
    ensure_writable(config)
    assert len(check_constraints(config)) == 1


@pytest.mark.parametrize(
    "sql", ["id in (select 1)", "reflect('a', 'b') = ''", "id > 0) or (true", "rand() > 0", "sum(id)"]
)
def test_what_is_no_condition_on_a_row_is_refused(sql: str):
    config = make_config(properties={"delta.constraints.pos": sql})
    with pytest.raises(UnsupportedFeature) as caught:
        plan_write(config, "memory://t")
    assert (caught.value.code, caught.value.features) == ("unsupported-constraint", ("checkConstraints",))
    assert "pos" in caught.value.message


def test_a_constraint_may_look_at_the_clock():
    assert check_constraints(make_config(properties={"delta.constraints.c": "id < unix_seconds(current_timestamp())"}))


def test_a_table_without_constraints_is_not_checked():
    assert not is_used(make_config())
    assert check_constraints(make_config()) == ()


def test_constraints_stand_in_the_order_of_their_names() -> None:
    """Whatever the order of the properties; and each has the columns that it names, and its own words."""
    said = {
        "delta.constraints.z": "id > 0",
        "delta.constraints.A": "1 = 1",
        "delta.constraint.x": "id > 1",
        "xdelta.constraints.y": "id > 2",
        "delta.constraints.m": "P is null or ID = 3",
    }
    config = make_config(properties=said)
    found = [(check.name, check.sql, check.columns, check.table_sql) for check in check_constraints(config)]
    assert found == [
        ("A", "1 = 1", (), "1 = 1"), ("m", "P is null or ID = 3", ("p", "id"), "`P` is null or `ID` = 3"), ("z", "id > 0", ("id",), "`id` > 0"),
    ]  # fmt: skip
    plan = plan_write(config, "memory://t")
    assert enforce(plan, config).checks == plan.checks + check_constraints(config)


def test_what_is_said_of_one_that_cannot_be_checked() -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        constraint_check("delta.constraints.c", "nobody > 0", make_config())
    assert "the constraint 'c' cannot be enforced" in caught.value.message
    assert "drop the table property delta.constraints.c " in str(caught.value.hint)
