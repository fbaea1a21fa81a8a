"""What becomes of random files: the rules of `MergeTreeCompactTask` and its rewriters once more, said in another way."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest

from alluvium.paimon.schema import DataField, parse_type
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.upkeep.keyed.steps import Bucket, File, Rules, Step, plan_steps
from alluvium.paimon.upkeep.keyed.universal import Unit

LARGE = 70


def random_bucket(lot: random.Random) -> tuple[Bucket, list[File]]:
    top = lot.randint(2, 5)
    sections: list[tuple[int, ...]] = []
    files: list[File] = []
    for _ in range(lot.randint(0, 5)):
        count = lot.choice([1, 1, 1, 2, 3])
        sections.append(tuple(range(len(files), len(files) + count)))
        files += [
            File(lot.choice([0, 0, 1, top]), lot.choice([1, LARGE - 1, LARGE, LARGE + 1]), *(lot.random() < 0.3 for _ in range(3)))
            for _ in range(count)
        ]  # fmt: skip
    level = lot.choice([0, 1, top - 1, top, top])
    return Bucket(Unit(level, tuple(range(len(files)))), tuple(sections), lot.randint(0, top), top), files


def random_rules(lot: random.Random) -> Rules:
    tells = lot.choice(["", "lookup", "full-compaction"])
    flags = [lot.random() < 0.5 for _ in range(3)]
    return Rules(LARGE, lot.randint(2, 5), tells == "lookup" or flags[0], tells, flags[1], flags[2], lot.random() < 0.2)


def apart(bucket: Bucket, files: list[File]) -> Iterator[list[int]]:
    """The files that are dealt with together: a large one that touches no other parts those before it from those behind."""
    for is_large, sections in itertools.groupby(
        bucket.sections, lambda section: len(section) == 1 and files[section[0]].size >= LARGE
    ):
        if is_large:
            yield from ([section[0]] for section in sections)
        else:
            yield [number for section in sections for number in section]


def expected(bucket: Bucket, files: list[File], rules: Rules) -> Iterator[Step]:
    level, is_last = bucket.unit.level, bucket.unit.level == bucket.top
    for numbers in apart(bucket, files):
        own = [files[number] for number in numbers]
        is_new = any(file.level == 0 for file in own)
        tells = {"lookup": is_new, "full-compaction": level == rules.top}.get(rules.tells, False)
        oldest = level > 0 and (rules.has_vectors or level >= bucket.highest)
        anew = Step(tuple(numbers), level, True, tells, oldest, rules.looks_up and is_new)
        if len(own) > 1:
            yield anew
            continue
        (file,) = own
        if file.level == level:
            if rules.rewrites_all or file.is_marked or file.is_expired:
                yield anew
        elif rules.rewrites_all or file.is_expired or (is_last and file.takes_back):
            yield anew
        elif rules.tells == "full-compaction" or not rules.looks_up or file.level:
            full = rules.tells == "full-compaction" and level == rules.top
            yield Step((numbers[0],), level, False, full, False, False)
        else:
            # `UpgradeStrategy`: with vectors deletions are taken out at once; else a merge needs those of other levels.
            takes_out = rules.has_vectors and file.takes_back
            merges = not is_last and not rules.keeps_last
            drops = rules.has_vectors and (takes_out or merges)
            yield Step((numbers[0],), level, takes_out or merges, rules.tells == "lookup", drops, True)


@pytest.mark.parametrize("seed", range(4))
def test_beside_the_rules(seed: int) -> None:
    lot = random.Random(seed)
    seen = 0
    for _ in range(500):
        (bucket, files), rules = random_bucket(lot), random_rules(lot)
        found = list(plan_steps(bucket, files, rules))
        assert found == list(expected(bucket, files, rules))
        seen += len(found)
    assert seen > 400


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, (5, False, "", False, True, False)),
        ({"num-levels": "3"}, (2, False, "", False, True, False)),
        ({"num-sorted-run.compaction-trigger": "2"}, (2, False, "", False, True, False)),
        ({"changelog-producer": "lookup"}, (5, True, "lookup", False, True, False)),
        ({"changelog-producer": "full-compaction"}, (5, False, "full-compaction", False, True, False)),
        ({"changelog-producer": "input"}, (5, False, "", False, True, False)),
        ({"deletion-vectors.enabled": "true"}, (5, True, "", True, True, False)),
        ({"merge-engine": "first-row"}, (5, True, "", False, False, False)),
        ({"merge-engine": "aggregation"}, (5, False, "", False, False, False)),
        ({"sequence.field": "v"}, (5, False, "", False, False, False)),
        ({"compaction.force-rewrite-all-files": "true"}, (5, False, "", False, True, True)),
    ],
)
def test_rules_of_a_table(options: dict[str, str], wanted: tuple[object, ...]) -> None:
    fields = [DataField(n, name, parse_type("INT NOT NULL")) for n, name in enumerate("kv")]
    rules = Rules.of(TableSchema.create(fields, (), ["k"], {"bucket": "1", **options}))
    found = (rules.top, rules.looks_up, rules.tells, rules.has_vectors, rules.keeps_last, rules.rewrites_all)
    assert found == wanted
    # Seven tenths of what files of such tables are meant to have: 128 MB.
    assert rules.large == (128 << 20) // 10 * 7
