"""Statements by who takes them, for our grammar and for the reference's own parser.

Each is a text that both parsers are given as it is. What delta-spark 4.4's parser says of it is recorded by the list
that it stands in; `tests/interop/test_sql_grammar.py` asks it.
"""

from __future__ import annotations

#: Accepted by both, as statements that only Delta knows.
DELTA_STATEMENTS = [
    "CREATE TABLE t SHALLOW CLONE s VERSION AS OF 3000000000",
    # VACUUM
    "VACUUM t", "vacuum T", "VACUUM db.t", "VACUUM cat.db.t", "VACUUM delta.`/tmp/a b`", "VACUUM `delta`.`/x``y`",
    "VACUUM '/tmp/t'", 'VACUUM "/tmp/t"', "VACUUM 's3://b/t' RETAIN 168 HOURS", "VACUUM t RETAIN 0 HOURS DRY RUN",
    "VACUUM t DRY RUN", "VACUUM t DRY RUN RETAIN 1 HOURS", "VACUUM t RETAIN 1.5 HOURS", "VACUUM t RETAIN .5 HOURS",
    "VACUUM t RETAIN 5. HOURS", "VACUUM t RETAIN 1e2 HOURS", "VACUUM t RETAIN 24D HOURS", "VACUUM t RETAIN - 1 HOURS",
    "VACUUM t LITE", "VACUUM t FULL", "VACUUM t lite dry run", "VACUUM t DRY RUN LITE RETAIN 3 HOURS",
    "VACUUM t USING INVENTORY inv", "VACUUM t USING INVENTORY db.inv RETAIN 1 HOURS DRY RUN",
    "VACUUM t USING INVENTORY (SELECT path, length FROM inv WHERE f(x) > 1) RETAIN 1 HOURS",
    "VACUUM t USING INVENTORY (select ')' as p) FULL", "VACUUM t RETAIN 2 HOURS USING INVENTORY inv FULL",
    "VACUUM full", "VACUUM lite LITE", "VACUUM dry DRY RUN", "VACUUM retain RETAIN 1 HOURS", "VACUUM vacuum",
    "VACUUM table", "VACUUM using USING INVENTORY inventory", "VACUUM 2024_t", "VACUUM db.2024_t", "VACUUM db . t",
    "VACUUM t;", "VACUUM t;;;", "VACUUM t ; ;", "  \n\tVACUUM\n  t\r\n", "-- c\nVACUUM t -- d", "/* c */VACUUM/**/t/*x*/",
    "/*+ HINT */ VACUUM t", "VACUUM -- a ' quote\n t", "VACUUM t -- ends here", "VACUUM '/a' '/b'", r"VACUUM '/a\'b'",
    r"VACUUM '/tab\there'", "VACUUM `größe`", "VACUUM '/größe/表'", "VACUUM delta.`/表`", "VACUUM `a.b`.`c d`",
    # DESCRIBE DETAIL, DESCRIBE HISTORY
    "DESCRIBE DETAIL t", "DESC DETAIL db.t", "describe detail delta.`/x`", "DESCRIBE DETAIL '/x'", "DESC DETAIL \"/x\"",
    "DESCRIBE DETAIL detail", "DESCRIBE DETAIL a.b.c", "DESCRIBE HISTORY t", "DESC HISTORY db.t LIMIT 5",
    "DESCRIBE HISTORY '/x' LIMIT 1", "DESCRIBE HISTORY delta.`/x` LIMIT 10;", "DESCRIBE HISTORY limit LIMIT 1",
    "describe\nhistory\nt\nlimit\n3",
    # GENERATE
    "GENERATE symlink_format_manifest FOR TABLE t", "generate SYMLINK_FORMAT_MANIFEST for table delta.`/x`",
    "GENERATE `symlink_format_manifest` FOR TABLE a.b.c", "GENERATE nonsense FOR TABLE t",
    # CONVERT
    "CONVERT TO DELTA parquet.`/x`", "convert to delta db.t", "CONVERT TO DELTA t NO STATISTICS",
    "CONVERT TO DELTA parquet.`/x` PARTITIONED BY (a int)",
    "CONVERT TO DELTA parquet.`/x` NO STATISTICS PARTITIONED BY (a INT, `b c` STRING NOT NULL, d decimal(10, 2))",
    "CONVERT TO DELTA parquet.`/x` PARTITIONED BY (a int COMMENT 'of it', b varchar(10), c char(3), e decimal(5))",
    "CONVERT TO DELTA iceberg.`/x`",
    # RESTORE
    "RESTORE t TO VERSION AS OF 1", "RESTORE TABLE t TO VERSION AS OF 1", "RESTORE t VERSION AS OF 1",
    "RESTORE TABLE db.t TO TIMESTAMP AS OF '2024-01-01'", "restore delta.`/x` to timestamp as of '2024-01-01 10:00'",
    "RESTORE t TO SYSTEM_VERSION AS OF 3", "RESTORE t FOR VERSION AS OF 3", "RESTORE t TO FOR SYSTEM_TIME AS OF 'x'",
    "RESTORE TABLE VERSION AS OF 1", "RESTORE TABLE TO VERSION AS OF 1", "RESTORE to TO VERSION AS OF 1",
    "RESTORE TABLE table TO VERSION AS OF 0",
    # OPTIMIZE
    "OPTIMIZE t", "optimize db.t", "OPTIMIZE '/x'", 'OPTIMIZE "/x"', "OPTIMIZE delta.`/x`", "OPTIMIZE t FULL",
    "OPTIMIZE t WHERE a = 1", "OPTIMIZE t WHERE day >= '2024-01-01' AND b IN (1, 2) ZORDER BY (c, d)",
    "OPTIMIZE t ZORDER BY a", "OPTIMIZE t ZORDER BY a, b.c", "OPTIMIZE t ZORDER BY (a)", "OPTIMIZE t ZORDER BY (`a b`, c)",
    "OPTIMIZE t WHERE zorder = 1 ZORDER BY zorder", "OPTIMIZE t WHERE a != 1 AND b !> 2 AND c <=> d", "OPTIMIZE full FULL",
    "OPTIMIZE t FULL WHERE a = 1", "OPTIMIZE t WHERE a = ';' ZORDER BY (b)", "OPTIMIZE t WHERE f(x, ')') > 1 -- end",
    "OPTIMIZE t where date '2024-01-01' < d", "OPTIMIZE optimize", "OPTIMIZE t WHERE a[0] = 1 AND m['k'] = 2;",
    # REORG
    "REORG TABLE t APPLY (PURGE)", "reorg table delta.`/x` apply(purge)", "REORG TABLE t WHERE a = 1 APPLY (PURGE)",
    "REORG TABLE t WHERE apply(x) = 1 APPLY (PURGE)",
    "REORG TABLE t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))",
    "REORG TABLE t APPLY (UPGRADE UNIFORM(ICEBERG_COMPAT_VERSION==1))",
    # ALTER TABLE
    "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0)", "alter table a.b.c add constraint `c d` check (a in (1, 2) or b(1))",
    "ALTER TABLE t ADD CONSTRAINT check CHECK (x = ')')", "ALTER TABLE delta.`/x` ADD CONSTRAINT c CHECK (a > 0);",
    "ALTER TABLE t DROP CONSTRAINT c", "ALTER TABLE t DROP CONSTRAINT IF EXISTS c", "ALTER TABLE t DROP FEATURE f",
    "ALTER TABLE t DROP FEATURE 'f-preview'", "ALTER TABLE t DROP FEATURE f TRUNCATE HISTORY",
    "ALTER TABLE t DROP FEATURE deletionVectors TRUNCATE HISTORY;", "ALTER TABLE t CLUSTER BY (a, b.c)",
    "ALTER TABLE t CLUSTER BY NONE", "alter table t cluster by (`a b`)", "ALTER TABLE t ALTER COLUMN id SYNC IDENTITY",
    "ALTER TABLE t CHANGE COLUMN id SYNC IDENTITY", "ALTER TABLE t ALTER id SYNC IDENTITY",
    "ALTER TABLE t ALTER COLUMN column SYNC IDENTITY", "ALTER TABLE t ALTER COLUMN a.b SYNC IDENTITY",
    # CLONE
    "CREATE TABLE t SHALLOW CLONE s", "create table if not exists a.b shallow clone c.d.e",
    "CREATE OR REPLACE TABLE t SHALLOW CLONE delta.`/x`", "REPLACE TABLE t SHALLOW CLONE s",
    "CREATE TABLE t SHALLOW CLONE s VERSION AS OF 3", "CREATE TABLE t SHALLOW CLONE s TIMESTAMP AS OF '2024-01-01'",
    "CREATE TABLE t SHALLOW CLONE s TBLPROPERTIES ('a' = 'b', c.d = 1, e = true, f 1.5) LOCATION '/y'",
    "CREATE TABLE delta.`/y` SHALLOW CLONE s LOCATION '/z'", "CREATE TABLE clone SHALLOW CLONE shallow",
    "CREATE TABLE shallow SHALLOW CLONE s",
]  # fmt: skip

#: Refused by both.
REFUSED = [
    "VACUUM", "VACUUM t x", "VACUUM t RETAIN", "VACUUM t RETAIN x HOURS", "VACUUM t RETAIN 1", "VACUUM t RETAIN 1 DAYS",
    "VACUUM t DRY", "VACUUM t RUN", "VACUUM t LITE FULL", "VACUUM t DRY RUN DRY RUN", "VACUUM t RETAIN 1 HOURS RETAIN 2 HOURS",
    "VACUUM t LITE USING INVENTORY i", "VACUUM t USING i", "VACUUM t USING INVENTORY",
    "VACUUM t USING INVENTORY ()", "VACUUM a.b.c.d", "VACUUM a.", "VACUUM .a", "VACUUM 1", "VACUUM t,u", "VACUUM my-table",
    "VACUUM t RETAIN - - 1 HOURS", "VACUUM t RETAIN + 1 HOURS", "VACUUM t; VACUUM u", "VACUUM 'unclosed", "VACUUM `unclosed",
    "VACUUM t /* unclosed", "VACUUM WHERE", "VACUUM NULL", "VACUUM ALTER", "VACUUM TABLE t", "VACUUM t WHERE a = 1",
    "VACUUM ('/x')", "OPTIMIZE", "OPTIMIZE t WHERE", "OPTIMIZE t ZORDER", "OPTIMIZE t ZORDER BY", "OPTIMIZE t ZORDER BY ()",
    "OPTIMIZE t ZORDER BY (a", "OPTIMIZE t ZORDER BY (a,)", "OPTIMIZE t ZORDER (a)", "OPTIMIZE t FULL FULL",
    "OPTIMIZE TABLE t", "OPTIMIZE t ZORDER BY (a + 1)", "OPTIMIZE t x", "OPTIMIZE a.b.c.d", "OPTIMIZE t WHERE",
    "RESTORE", "RESTORE t", "RESTORE t TO", "RESTORE t TO VERSION", "RESTORE t TO VERSION AS OF", "RESTORE t TO 3",
    "RESTORE t TO VERSION AS OF -1", "RESTORE t TO VERSION AS OF 1.5", "RESTORE t TO TIMESTAMP AS OF 1",
    "RESTORE '/x' TO VERSION AS OF 1", "RESTORE t TO TIMESTAMP AS OF current_timestamp()", "RESTORE t VERSION AS OF x",
    "RESTORE t TO VERSION AS OF 1 2", "RESTORE t TO VERSION AS OF 99999999999999999999", "CONVERT TO DELTA",
    "CONVERT t TO DELTA", "CONVERT TO ICEBERG t", "CONVERT TO DELTA '/x'", "CONVERT TO DELTA t PARTITIONED BY",
    "CONVERT TO DELTA t PARTITIONED BY ()", "CONVERT TO DELTA t PARTITIONED BY (a)", "CONVERT TO DELTA t NO",
    "CONVERT TO DELTA t PARTITIONED BY (a nonsense)", "CONVERT TO DELTA t PARTITIONED BY (a int(3))",
    "CONVERT TO DELTA t PARTITIONED BY (a array<int>)", "CONVERT TO DELTA t PARTITIONED BY (a decimal(1,2,3))",
    "CONVERT TO DELTA t PARTITIONED BY (a int) NO STATISTICS", "GENERATE", "GENERATE m", "GENERATE m FOR t",
    "GENERATE m FOR TABLE", "GENERATE 'm' FOR TABLE t", "GENERATE m FOR TABLE '/x'", "REORG t APPLY (PURGE)",
    "REORG TABLE t", "REORG TABLE t APPLY PURGE", "REORG TABLE t APPLY ()", "REORG TABLE t WHERE APPLY (PURGE)",
    "REORG TABLE t APPLY (UPGRADE)", "REORG TABLE t WHERE a = 1 APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))",
    "REORG TABLE t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = x))", "REORG TABLE t APPLY (PURGE) x",
    "DESCRIBE HISTORY t LIMIT", "DESCRIBE HISTORY t LIMIT x", "DESCRIBE HISTORY t LIMIT 1 2", "DESCRIBE HISTORY t 5",
    "DESCRIBE DETAIL '/x' y", "DESCRIBE HISTORY t LIMIT 99999999999", "ALTER TABLE t DROP FEATURE",
    "ALTER TABLE t DROP FEATURE f TRUNCATE", "ALTER TABLE t DROP FEATURE f HISTORY",
    "ALTER TABLE t ALTER COLUMN id SYNC", "ALTER TABLE t ALTER COLUMN id SYNC IDENTITY x",
    "CREATE TABLE t SHALLOW CLONE", "CREATE TABLE SHALLOW CLONE s", "CREATE TABLE t SHALLOW CLONE s x",
    "CREATE OR REPLACE TABLE IF NOT EXISTS t SHALLOW CLONE s", "CREATE TABLE t SHALLOW CLONE s VERSION AS OF",
    "CREATE TABLE t SHALLOW CLONE s TBLPROPERTIES ()", "CREATE TABLE t SHALLOW CLONE s TBLPROPERTIES ('a')",
    "CREATE TABLE t SHALLOW CLONE s TBLPROPERTIES ('a' = 'b', 'a' = 'c')", "CREATE TABLE t SHALLOW CLONE '/x'",
    "CREATE TABLE t SHALLOW CLONE s LOCATION", "CREATE TABLE t SHALLOW CLONE s LOCATION x",
]  # fmt: skip

#: Ours; delta-spark refuses them.
EXTENSIONS = [
    "CREATE TABLE t DEEP CLONE s", "CREATE TABLE t CLONE s", "CREATE OR REPLACE TABLE t CLONE s@v3 LOCATION '/y'",
    "CREATE TABLE t SHALLOW CLONE s@20240131235959999", "CREATE TABLE t SHALLOW CLONE s VERSION AS OF '3'",
    "CREATE TABLE t SHALLOW CLONE s LOCATION '/y' TBLPROPERTIES ('a' = 'b')",
    "RESTORE t TO VERSION AS OF '3'", "RESTORE t TO VERSION AS OF :v", "RESTORE t TO TIMESTAMP AS OF ?",

    "FSCK REPAIR TABLE t", "FSCK REPAIR TABLE delta.`/x` DRY RUN", "ALTER TABLE t ADD FEATURE deletionVectors",
    "ALTER TABLE t ADD FEATURE 'f'", "VACUUM IDENTIFIER('db.t')", "OPTIMIZE IDENTIFIER(:t) WHERE a > :a",
    "VACUUM :path", "VACUUM t RETAIN :hours HOURS", "DESCRIBE HISTORY t LIMIT ?", "VACUUM t RETAIN 24L HOURS",
    "VACUUM t RETAIN 1BD HOURS", "OPTIMIZE t ZORDER BY (timestamp, version)", "VACUUM db.history", "VACUUM größe",
    "CONVERT TO DELTA parquet.`/x` PARTITIONED BY (a timestamp_ntz)", r"VACUUM r'C:\new'", "/* a /* b */ c */ VACUUM t",
]  # fmt: skip

#: Refused by us at once; delta-spark's parser takes them, and fails later or not at all.
NARROWINGS = [
    "VACUUM t USING INVENTORY (",
    "OPTIMIZE t WHERE (a = 1", "OPTIMIZE t WHERE a = 1)", "OPTIMIZE t WHERE a = 1; b = 2", "VACUUM (", "OPTIMIZE )",
    "CREATE TABLE t SHALLOW CLONE s TBLPROPERTIES (a = f('x', 'y'))", "VACUUM ``",
    "VACUUM t RETAIN 1e999 HOURS", "VACUUM t USING INVENTORY (select (1)", "CONVERT TO DELTA t PARTITIONED BY (a interval)",
]  # fmt: skip

#: Spark's, to read for a verb of ours; its parser takes them.
SPARK_PARSED = [
    "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE", "UPDATE t SET a = 1 WHERE b = 2", "DELETE FROM t WHERE a = 1",
    "DELETE FROM delta.`/x`", "INSERT INTO t VALUES (1)", "INSERT OVERWRITE t SELECT * FROM s", "insert into t select 1",
    "WITH s AS (SELECT 1 AS a) INSERT INTO t SELECT * FROM s", "WITH s AS (SELECT 1 a) MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE",
    "WITH s AS (SELECT 1) DELETE FROM t WHERE a = 1", "WITH s AS (SELECT 1) UPDATE t SET a = 1",
    "FROM s INSERT INTO t SELECT a INSERT INTO u SELECT b", "TRUNCATE TABLE t", "ANALYZE TABLE t COMPUTE STATISTICS",
    "EXECUTE IMMEDIATE 'VACUUM t'", "begin select 1; end", "/* a */ Execute Immediate x USING 1",
    "MSCK REPAIR TABLE t", "CREATE TABLE t (a INT) USING delta", "CREATE TABLE clone (shallow INT)", "CREATE TABLE t LIKE s",
    "CREATE OR REPLACE TABLE t USING delta AS SELECT 1 AS a", "REPLACE TABLE t (a INT) USING delta",
    "CREATE TABLE t USING delta CLUSTER BY (a) AS SELECT 1 AS a", "CREATE TABLE IF NOT EXISTS delta.`/x` (a INT) USING delta",
    "DROP TABLE t", "DROP TABLE IF EXISTS t PURGE", "ALTER TABLE t ADD COLUMNS (a INT)", "ALTER TABLE t ADD COLUMN feature INT",
    "ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')", "ALTER TABLE t RENAME TO u", "ALTER TABLE t DROP COLUMN constraint",
    "ALTER TABLE t ALTER COLUMN a COMMENT 'SYNC IDENTITY'", "ALTER TABLE t ALTER COLUMN sync TYPE BIGINT",
    "ALTER TABLE t ADD PARTITION (p = 1)", "COMMENT ON TABLE t IS 'c'", "DESCRIBE t", "DESC EXTENDED t", "DESCRIBE TABLE t",
    "DESCRIBE detail", "DESCRIBE history", "DESCRIBE history.t", "DESC detail PARTITION (p = 1)",
    "DESCRIBE t a", "DESCRIBE TABLE detail a", "DESCRIBE EXTENDED history a", "SHOW TBLPROPERTIES t", "SHOW COLUMNS IN t",
    "SHOW PARTITIONS t", "SHOW TABLES", "SHOW CREATE TABLE t", "EXPLAIN MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE",
    "EXPLAIN FORMATTED DELETE FROM t", "CACHE TABLE t", "CACHE LAZY TABLE t OPTIONS ('storageLevel' 'DISK_ONLY')",
    "CREATE TEMPORARY VIEW v USING delta OPTIONS (path '/x')", "CREATE OR REPLACE GLOBAL TEMP VIEW v (a INT) USING delta",
]  # fmt: skip

#: Spark's alone; its parser takes them.
QUERIES = [
    "SELECT 1", "select * from vacuum", "SELECT 'VACUUM t'", "(SELECT 1)", "((SELECT 1) UNION (SELECT 2))", "VALUES (1), (2)",
    "TABLE t", "FROM t SELECT *", "FROM optimize", "FROM t |> WHERE a = 1", "WITH vacuum AS (SELECT 1) SELECT * FROM vacuum",
    "WITH a AS (SELECT 'INSERT INTO t') SELECT * FROM a", "WITH `insert` AS (SELECT 1) SELECT * FROM `insert`",
    "WITH update AS (SELECT 1 AS delete) SELECT delete FROM update", "WITH merge (insert) AS (SELECT 1) SELECT * FROM merge",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r",
    "/* VACUUM t */ SELECT 1", "-- VACUUM t\nSELECT 1", "/* a /* VACUUM b */ VACUUM */ SELECT 1", "SELECT /*+ BROADCAST(t) */ * FROM t",
    "SELECT * FROM t WHERE a IN (SELECT b FROM restore)", "SELECT * FROM t VERSION AS OF 3", "SELECT * FROM delta.`/x@v3`",
    "SELECT * FROM table_changes('t', 1)", "SELECT optimize, vacuum, reorg, fsck FROM convert", "EXPLAIN SELECT 1",
    "EXPLAIN EXTENDED WITH a AS (SELECT 1) SELECT * FROM a", "SHOW DATABASES", "SHOW FUNCTIONS", "USE db", "SET a = b",
    "CREATE VIEW v AS SELECT * FROM t", "CREATE OR REPLACE TEMP VIEW optimize AS SELECT 1", "DROP VIEW v",
    "ALTER VIEW v AS SELECT 1", "CREATE DATABASE d", "REFRESH TABLE t", "DESCRIBE FUNCTION f",
    "DESCRIBE QUERY SELECT 1", "DESCRIBE SELECT 1", "DESCRIBE DATABASE d",
    "DECLARE x = 1", "SELECT * FROM t -- VACUUM", "SELECT 1;", "-- a \\\nVACUUM t\nSELECT 1", "MAP a USING 'cat' FROM t",
    "SELECT * FROM t ORDER BY optimize", "select(1)", "WITH a AS (SELECT 1), b AS (SELECT 2) (SELECT * FROM a) UNION ALL SELECT * FROM b",
]  # fmt: skip

#: Refused by Spark, whose statements they might be.
REFUSED_BY_SPARK = [
    "DESCRIBE detail AS JSON",
    "CREATE TABLE t SHALLOW s", "CREATE TABLE t (a INT) SHALLOW CLONE s", "CREATE TABLE t USING delta SHALLOW CLONE s",
    "ALTER TABLE t CLUSTER BY", "ALTER TABLE t CLUSTER BY ()", "ALTER TABLE t CLUSTER BY a", "ALTER TABLE t CLUSTER (a)",
    "ALTER TABLE t DROP CONSTRAINT", "ALTER TABLE t DROP CONSTRAINT IF c", "ALTER TABLE t ADD CONSTRAINT c CHECK ()",
    "ALTER TABLE t ADD CONSTRAINT c CHECK a > 0", "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0",
    "ALTER TABLE t ALTER COLUMN SYNC",
]  # fmt: skip

#: Statements to delta-spark's lexer, and comments with nothing behind them to Spark's: Spark's to refuse.
COMMENTS = ["/* a /* b */ VACUUM t", "-- a \\\nVACUUM t"]

#: No statements at all; Spark's to refuse.
NOTHING = [
    "",
    " ",
    ";",
    "--",
    "/* open",
    "VACUUMT t",
    "`VACUUM` t",
    "'VACUUM' t",
    "(VACUUM t)",
    "1",
    "?",
    "ＶＡＣＵＵＭ t",
    "vacuum_t x",
]
