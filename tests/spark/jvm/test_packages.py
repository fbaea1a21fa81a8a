"""Names of the JVM as `Packages` finds them are those that py4j finds part by part."""

from __future__ import annotations

import pytest
from py4j.java_gateway import JavaClass, JavaPackage

from alluvium.spark.jvm.packages import Packages

pytestmark = pytest.mark.spark


@pytest.fixture
def packages(spark) -> Packages:
    return Packages(spark.sparkContext._gateway.jvm)


@pytest.mark.parametrize(
    "name", ["java.util.HashMap", "org.apache.spark.sql.functions", "scala.Option", "org.apache.hadoop.fs.Path", "long"]
)
def test_a_class_is_py4js(packages, name):
    found = packages
    for part in name.split("."):
        found = getattr(found, part)
    assert isinstance(found, JavaClass)
    assert found._fqn == name


def test_what_it_gives_can_be_called(packages):
    made = packages.java.util.ArrayList()
    made.add(packages.java.lang.Integer.parseInt("7"))
    assert made.get(0) == 7


def test_a_nested_class_is_found_by_its_binary_name(packages):
    assert packages.java.util.__getattr__("Map$Entry")._fqn == "java.util.Map$Entry"


def test_a_class_that_is_missing_is_py4js_package(packages):
    assert isinstance(packages.java.util.NoSuchThing, JavaPackage)


def test_each_is_asked_for_once(packages):
    assert packages.java.util.HashMap is packages.java.util.HashMap
    assert packages.java is packages.java


def test_names_of_python_are_not_the_jvms(packages):
    with pytest.raises(AttributeError):
        packages.__wrapped__  # noqa: B018
