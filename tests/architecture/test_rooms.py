"""Rooms: none too full, each says what lives in it and what must not, twins do the same job, tests stand as the source."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "alluvium"
MAX_LOOSE_FILES = 15
WINGS = ("delta", "paimon")


def rooms() -> list[Path]:
    return sorted({path.parent for path in PACKAGE.rglob("__init__.py")} - {PACKAGE})


def constitution(room: Path) -> str:
    return ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or ""


def name(room: Path) -> str:
    return room.relative_to(PACKAGE).as_posix()


def test_no_room_has_more_than_15_loose_files():
    loose = {name(room): len([p for p in room.glob("*.py") if p.name != "__init__.py"]) for room in rooms()}
    assert len(loose) > 40
    assert not {room: count for room, count in loose.items() if count > MAX_LOOSE_FILES}


def test_every_room_says_what_must_not_live_in_it():
    assert not [name(room) for room in rooms() if "Must not live here:" not in constitution(room)]


def test_wings_have_no_loose_files():
    assert not [p.name for wing in WINGS for p in (PACKAGE / wing).glob("*.py") if p.name != "__init__.py"]


def job(room: Path) -> str:
    """The beginning of the constitution's first sentence, up to what only this wing has."""
    return re.split(r"[:.,]", constitution(room))[0]


def test_twins_do_the_same_job():
    floors = [{room.name: room for room in rooms() if room.parent == PACKAGE / wing} for wing in WINGS]
    twins = floors[0].keys() & floors[1].keys()
    assert twins >= {"terms", "features", "log", "view", "commit", "write"}
    assert not {floor for floor in twins if job(floors[0][floor]) != job(floors[1][floor])}


def test_tests_stand_as_the_source():
    """A folder of tests below the name of a room mirrors a room."""
    mirrored = [p.parent for p in (ROOT / "tests").rglob("test_*.py")]
    places = {p.relative_to(ROOT / "tests") for p in mirrored}
    strays = [
        place.as_posix() for place in places if (PACKAGE / place.parts[0]).is_dir() and not (PACKAGE / place).is_dir()
    ]
    assert not strays


def test_tests_of_a_module_stand_beside_its_room():
    """`test_x.py` that lies in a room's folder, while the module `x` lies in another room of the same wing, is lost."""
    modules: dict[tuple[str, str], list[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE)
        if len(place.parts) > 1:
            modules.setdefault((place.parts[0], path.stem), []).append(place.parent.as_posix())
    lost = []
    for path in (ROOT / "tests").rglob("test_*.py"):
        place = path.relative_to(ROOT / "tests")
        homes = modules.get((place.parts[0], path.stem.removeprefix("test_")), [])
        if homes and place.parent.as_posix() not in homes and place.parts[0] in WINGS:
            lost.append(f"{place}: {homes}")
    assert not lost


PLACE = re.compile(r"`(?:src/alluvium/)?((?:[a-z_]+/)+(?:[a-z_]+\.py)?)`")


def test_the_page_of_the_architecture_names_rooms_that_exist():
    """Of places that begin with a storey: others are named from the room that their sentence is about."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = {place for place in PLACE.findall(page) if (PACKAGE / place.split("/")[0]).is_dir()}
    # Floors stand in the table by their own names, which are those of storeys, too.
    named -= {f"{room.name}/" for room in rooms()}
    assert len(named) > 30
    assert not sorted(place for place in named if not (PACKAGE / place).exists())
