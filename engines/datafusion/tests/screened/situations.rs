//! Several hundred joins with the rule and without: pairs of key types and expressions, shapes of queries, settings.
//!
//! The situations are known to have misled join filters of DataFusion and other engines: NULL on either side, NULL
//! inside a dictionary, casts, equal names of columns, an empty side, limits, partitions without rows, files with other
//! columns than their table. Expected rows come from the engine on the same tables with all dynamic filters off.
//! (DataFusion 55.2 itself treats NULL inside a dictionary as a value, in conditions on tables in memory. Its own
//! dynamic filters lose rows below joins with equal names of columns, issue 25262.)

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
};
use datafusion::arrow::datatypes::{DataType, Int32Type, TimeUnit};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::physical_plan::displayable;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::generated::{JOINS, column};
use crate::{config, counted, run, screened, subqueries, table};

/// Returns the columns of keys with their names; the last two have no filter.
fn types() -> Vec<(&'static str, DataType)> {
    use DataType::*;
    let dictionary = |values: DataType| Dictionary(Box::new(Int32), Box::new(values));
    vec![
        ("i8", Int8),
        ("i32", Int32),
        ("i64", Int64),
        ("u16", UInt16),
        ("u64", UInt64),
        ("day", Date32),
        ("millis", Date64),
        ("time", Time64(TimeUnit::Microsecond)),
        ("seconds", Timestamp(TimeUnit::Second, None)),
        ("nanos", Timestamp(TimeUnit::Nanosecond, None)),
        ("utc", Timestamp(TimeUnit::Microsecond, Some("+00:00".into()))),
        ("east", Timestamp(TimeUnit::Nanosecond, Some("+02:00".into()))),
        ("price", Decimal128(9, 2)),
        ("exact", Decimal128(22, 4)),
        ("wide", Decimal256(40, 2)),
        ("text", Utf8),
        ("large", LargeUtf8),
        ("view", Utf8View),
        ("bytes", Binary),
        ("byteview", BinaryView),
        ("name", dictionary(Utf8)),
        ("number", dictionary(Int64)),
        ("ratio", Float64),
        ("odd", Boolean),
    ]
}

/// Key expressions of the small and the large table.
const PAIRS: &[(&str, &str)] = &[
    ("i8", "i8"),
    ("i64", "i64"),
    ("i32", "i64"),
    ("i64", "i8"),
    ("u16", "i32"),
    ("u64", "i64"),
    ("i64 + 1", "i64"),
    ("i64 * 2", "i32 % 7"),
    ("abs(i64 - 5)", "coalesce(i64, 3)"),
    ("CAST(text AS BIGINT)", "i64"),
    ("day", "day"),
    ("millis", "millis"),
    ("day", "millis"),
    ("time", "time"),
    ("seconds", "nanos"),
    ("utc", "utc"),
    ("utc", "east"),
    ("arrow_cast(seconds, 'Timestamp(Second, Some(\"UTC\"))')", "east"),
    ("price", "price"),
    ("price", "exact"),
    ("i32", "price"),
    ("wide", "wide"),
    ("price", "wide"),
    ("text", "text"),
    ("text", "view"),
    ("large", "text"),
    ("view", "name"),
    ("name", "name"),
    ("name", "text"),
    ("concat('x', text)", "concat('x', view)"),
    ("bytes", "bytes"),
    ("bytes", "byteview"),
    ("number", "number"),
    ("number", "i64"),
    ("hollow", "hollow"),
    ("hollow", "text"),
    ("ratio", "ratio"),
    ("odd", "odd"),
    ("CASE WHEN i64 > 4 THEN i64 END", "nullif(i64, 6)"),
    ("i64", "CASE WHEN l = 1 THEN NULL ELSE i64 END"),
];

/// Queries in addition to [`JOINS`], of `a` and `b` with the columns `k`, `l` and `v` or `w`.
const SHAPES: &[&str] = &[
    // A limit above, a limit below, the first rows of an order.
    "SELECT count(*) FROM (SELECT a.v FROM a JOIN b ON {on} LIMIT 5)",
    "SELECT a.v, b.w FROM (SELECT * FROM a ORDER BY v LIMIT 4) AS a JOIN b ON {on}",
    "SELECT a.v, b.w FROM a JOIN b ON {on} ORDER BY b.w DESC, a.v LIMIT 5",
    "SELECT count(*) FROM (SELECT a.v, b.w FROM a FULL JOIN b ON {on} LIMIT 9)",
    // A side that is empty, or of NULL alone.
    "SELECT a.v, b.w FROM (SELECT * FROM a WHERE v < 0) AS a JOIN b ON {on}",
    "SELECT a.v, b.w FROM a LEFT JOIN (SELECT * FROM b WHERE w < 0) AS b ON {on}",
    "SELECT a.v, b.w FROM (SELECT * FROM a WHERE k IS NULL) AS a JOIN b ON {on}",
    "SELECT a.v FROM a WHERE a.k IS NULL AND NOT EXISTS (SELECT 1 FROM b WHERE {on})",
    // NULL in sets.
    "SELECT a.v FROM a WHERE a.k NOT IN (SELECT b.k FROM b)",
    "SELECT a.v FROM a WHERE a.k NOT IN (SELECT b.k FROM b WHERE b.k IS NOT NULL)",
    "SELECT a.v FROM a WHERE a.k NOT IN (SELECT b.k FROM b WHERE b.k IS NOT NULL AND b.l < a.l)",
    "SELECT b.w FROM b WHERE b.k NOT IN (SELECT a.k FROM a WHERE a.v < 3) OR b.w < 5",
    "SELECT b.w FROM b WHERE b.k IN (SELECT a.k FROM a) OR b.w < 5",
    "SELECT k FROM a INTERSECT SELECT k FROM b",
    "SELECT k FROM a EXCEPT SELECT k FROM b",
    "SELECT k FROM b EXCEPT ALL SELECT k FROM a",
    "SELECT a.v, b.w FROM a JOIN b ON (a.k IS NOT DISTINCT FROM b.k) AND a.l = b.l",
    // Conditions above, and between.
    "SELECT a.v, b.w FROM a JOIN b ON {on} WHERE b.w % 3 = 1 AND (a.v > 2 OR b.l = 0)",
    "SELECT a.v, b.w FROM a LEFT JOIN b ON {on} AND b.w > 30 WHERE b.w IS NULL OR b.w % 2 = 0",
    "SELECT a.v, b.w FROM b RIGHT JOIN a ON {on} AND a.v > b.w",
    // Columns of the same name, twice the same table, groups.
    "SELECT a.v, d.w FROM a JOIN (SELECT b.k, b.w, c.k AS z FROM a AS c RIGHT JOIN b ON c.l = b.l) AS d ON a.k = d.k",
    "SELECT * FROM a JOIN b ON {on} JOIN b AS c ON b.k = c.k AND b.w = c.w JOIN a AS d ON d.k = c.k",
    "SELECT a.v, g.n FROM a JOIN (SELECT l, k, count(*) AS n FROM b GROUP BY l, k HAVING count(*) < 9) AS g ON a.k = g.k",
    "SELECT min(b.w), max(b.w), count(DISTINCT a.v) FROM a JOIN b ON {on}",
    "SELECT k, sum(n) FROM (SELECT a.k, b.w AS n FROM a JOIN b ON {on} UNION ALL SELECT k, w FROM b) GROUP BY k",
    "SELECT a.v, u.w FROM a JOIN (SELECT k, w FROM b UNION SELECT k, v FROM a UNION ALL SELECT NULL, 7) AS u ON a.k = u.k",
    "SELECT v, (SELECT max(w) FROM b WHERE {on}) AS most FROM a",
    "SELECT b.w FROM b WHERE b.w > (SELECT avg(a.v) FROM a WHERE {on})",
];

/// Returns the keys of a table, with NULL and duplicates; most keys of one table are missing in the other.
fn numbers(rows: i32, every: i32) -> (Vec<Option<i32>>, Vec<Option<i32>>) {
    let key = |row: i32| (row % 5 != 3).then_some(row * every % 97);
    ((0..rows).map(key).collect(), (0..rows).map(|row| (row % 7 != 6).then_some(row % 4)).collect())
}

/// Returns the columns of a table, with row numbers named `own`.
fn columns(own: &'static str, rows: i32, every: i32) -> Vec<(&'static str, ArrayRef)> {
    let (keys, others) = numbers(rows, every);
    let mut columns: Vec<(&str, ArrayRef)> =
        types().into_iter().map(|(name, kind)| (name, consistent(&keys, &kind))).collect();
    let (_, ratio) = columns.iter_mut().find(|(name, _)| *name == "ratio").unwrap();
    let odd_floats = |key: &Option<i32>| key.map(|key| [f64::NAN, -0.0, 0.0, f64::from(key)][key as usize % 4]);
    *ratio = Arc::new(keys.iter().map(odd_floats).collect::<Float64Array>());
    columns.push(("hollow", hollow(&keys)));
    columns.push(("l", column(&others, &DataType::Int32)));
    columns.push((own, Arc::new(Int64Array::from_iter_values(0..i64::from(rows)))));
    columns
}

/// Builds a column with the same instants and days in all units.
fn consistent(numbers: &[Option<i32>], kind: &DataType) -> ArrayRef {
    use datafusion::arrow::compute::cast;
    let through = |step: DataType| cast(&column(numbers, &step), kind).unwrap();
    match kind {
        DataType::Timestamp(_, None) => through(DataType::Timestamp(TimeUnit::Second, None)),
        DataType::Timestamp(..) => through(DataType::Timestamp(TimeUnit::Second, Some("+00:00".into()))),
        DataType::Date64 => through(DataType::Date32),
        kind => column(numbers, kind),
    }
}

/// Builds a dictionary of texts with NULL as a value; rows are not null themselves, but some point to it.
fn hollow(numbers: &[Option<i32>]) -> ArrayRef {
    let values: StringArray = std::iter::once(None).chain((0..97).map(|n| Some(n.to_string()))).collect();
    let places: Int32Array = numbers.iter().map(|number| Some(number.map_or(0, |number| number + 1))).collect();
    Arc::new(DictionaryArray::<Int32Type>::new(places, Arc::new(values)))
}

const SMALL: (&str, &str, i32, i32) = ("small", "v", 12, 5);
const LARGE: (&str, &str, i32, i32) = ("large_table", "w", 160, 3);

/// Settings of one context.
#[derive(Clone, Copy, Debug)]
struct Setting {
    partitions: usize,
    batch_size: usize,
    /// Whether the small side goes to all partitions.
    broadcast: bool,
    /// Tables in files, not in memory.
    parquet: bool,
    /// Whether scans drop rows.
    in_scan: bool,
    /// Whether the engine's own filters are on.
    engine: bool,
    /// Filters by subqueries, not by operators.
    subqueries: bool,
}

const BASE: Setting = Setting {
    partitions: 2,
    batch_size: 8192,
    broadcast: false,
    parquet: true,
    in_scan: true,
    engine: true,
    subqueries: false,
};
/// The engine's own filters are off where ours are subqueries, which do not replace them.
const SETTINGS: &[Setting] = &[
    Setting { partitions: 1, parquet: false, ..BASE },
    Setting { partitions: 24, parquet: false, ..BASE },
    Setting { partitions: 3, batch_size: 7, ..BASE },
    Setting { batch_size: 3, engine: false, ..BASE },
    Setting { broadcast: true, in_scan: false, ..BASE },
    Setting { engine: false, subqueries: true, ..BASE },
];

impl Setting {
    fn config(self) -> SessionConfig {
        let threshold = if self.broadcast { 1 << 20 } else { 0 };
        config(self.partitions)
            .with_batch_size(self.batch_size)
            .set_usize("datafusion.optimizer.hash_join_single_partition_threshold", threshold)
            .set_bool("datafusion.execution.parquet.pushdown_filters", self.in_scan)
            .set_bool("datafusion.optimizer.enable_join_dynamic_filter_pushdown", self.engine)
    }

    async fn context(self) -> SessionContext {
        if self.subqueries { subqueries::screened(self.config()).await } else { screened(self.config()).await }
    }
}

/// Returns the engine alone, on one partition, with all dynamic filters off.
fn plain() -> SessionContext {
    SessionContext::new_with_config(config(1).set_bool("datafusion.optimizer.enable_dynamic_filter_pushdown", false))
}

/// Writes columns as Parquet, in row groups of a few rows.
fn write(path: &Path, columns: &[(&str, ArrayRef)]) {
    let columns = columns.iter().map(|(name, column)| (*name, column.clone(), true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(9)).build();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// A context with the rule, and one without on the same tables.
struct Compared {
    plain: SessionContext,
    screened: SessionContext,
}

/// Returns one pair of contexts per setting, with these tables; their files are in `folder`.
async fn contexts(folder: &Path, tables: &[(&str, Vec<(&str, ArrayRef)>)]) -> Vec<Compared> {
    for (name, columns) in tables {
        write(&folder.join(format!("{name}.parquet")), columns);
    }
    let mut contexts = Vec::new();
    for setting in SETTINGS {
        let compared = Compared { plain: plain(), screened: setting.context().await };
        for context in [&compared.plain, &compared.screened] {
            for (name, columns) in tables {
                if setting.parquet {
                    let path = folder.join(format!("{name}.parquet"));
                    context.register_parquet(*name, &path.to_string_lossy(), Default::default()).await.unwrap();
                } else {
                    table(context, name, columns, setting.partitions, setting.partitions * 2);
                }
            }
        }
        contexts.push(compared);
    }
    contexts
}

/// Totals over queries.
#[derive(Default, Debug)]
struct Done {
    queries: usize,
    screened: usize,
    dropped: usize,
}

impl Done {
    /// Compares the rows of one query.
    async fn compare(&mut self, contexts: &Compared, sql: &str) {
        let (expected, _) = run(&contexts.plain, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let found = run(&contexts.screened, sql).await;
        let (found, plan) = found.unwrap_or_else(|error| panic!("screened {sql}: {error}"));
        let text = displayable(plan.as_ref()).indent(true).to_string();
        assert_eq!(found, expected, "{sql}\n{text}");
        self.queries += 1;
        self.screened += usize::from(text.contains("FilterBuildExec") || text.contains("might_contain"));
        self.dropped += counted(&plan, "FilterBuildExec", "rows_dropped");
    }
}

#[tokio::test]
async fn several_hundred_joins_have_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let tables = [SMALL, LARGE].map(|(name, own, rows, every)| (name, columns(own, rows, every)));
    let contexts = contexts(folder.path(), &tables).await;
    let shapes: Vec<&str> = JOINS.iter().chain(SHAPES).copied().collect();
    let mut done = Done::default();
    for (number, (small, large)) in PAIRS.iter().enumerate() {
        // Each pair in every fourth shape, under alternating settings.
        for (turn, shape) in shapes.iter().enumerate().skip(number % 4).step_by(4) {
            let on = if turn % 3 == 2 { "a.k = b.k AND a.l = b.l" } else { "a.k = b.k" };
            let sql = format!(
                "WITH a AS (SELECT {small} AS k, l, v FROM small), b AS (SELECT {large} AS k, l, w FROM large_table) {}",
                shape.replace("{on}", on)
            );
            done.compare(&contexts[(number + turn / 4) % contexts.len()], &sql).await;
        }
    }
    println!("{done:?}");
    assert!(done.queries >= 450 && done.screened >= 250 && done.dropped > 5000, "{done:?}");
}

/// Checks that the queries above test something: each pair of keys has partners and, where its type allows, a filter.
#[tokio::test]
async fn pairs_of_keys_have_partners() {
    let folder = tempfile::tempdir().unwrap();
    let tables = [SMALL, LARGE].map(|(name, own, rows, every)| (name, columns(own, rows, every)));
    let contexts = contexts(folder.path(), &tables).await;
    for (small, large) in PAIRS {
        let sql = format!(
            "SELECT v, w FROM (SELECT {small} AS k, v FROM small) AS a
            JOIN (SELECT {large} AS k, w FROM large_table) AS b ON a.k = b.k"
        );
        let (expected, _) = run(&contexts[0].plain, &sql).await.unwrap();
        assert!(!expected.is_empty(), "{sql}");
        let mut done = Done::default();
        done.compare(&contexts[0], &sql).await;
        assert_eq!(done.screened, usize::from(!["ratio", "odd"].contains(small)), "{sql}");
    }
}

/// Compares named situations under every setting.
#[tokio::test]
async fn situations_that_have_misled_join_filters() {
    let folder = tempfile::tempdir().unwrap();
    let integers = |values: &[Option<i64>]| -> ArrayRef { Arc::new(Int64Array::from(values.to_vec())) };
    let texts = |values: &[&str]| -> ArrayRef { Arc::new(StringArray::from(values.to_vec())) };
    let many = |rows: i64| integers(&(0..rows).map(Some).collect::<Vec<_>>());
    let tables = [
        ("ids", vec![("k", many(300))]),
        ("id_values", vec![("k", many(300)), ("v", many(300))]),
        ("asked", vec![("id", integers(&[Some(5), None]))]),
        ("apart", vec![("eid", integers(&[Some(2), Some(3)]))]),
        ("with_null", vec![("eid", integers(&[Some(2), None]))]),
        ("only_null", vec![("eid", integers(&[None, None]))]),
        ("ta", vec![("id", texts(&["a1"])), ("ty", texts(&["x1"]))]),
        ("tb", vec![("id", texts(&["x1"]))]),
        ("tc", vec![("id", texts(&["x1"])), ("n", integers(&[Some(1)]))]),
        ("orders", vec![("amount", integers(&[Some(100), Some(200), Some(300)])), ("id", many(3))]),
        ("payments", vec![("amount", integers(&[Some(30), Some(20), Some(10)])), ("id", many(3))]),
        ("customers", vec![("id", many(3))]),
        (
            "cities",
            vec![
                (
                    "city",
                    consistent(
                        &[Some(1), Some(2), Some(1), None],
                        &DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
                    ),
                ),
                ("t", many(4)),
            ],
        ),
        (
            "events",
            vec![
                (
                    "at",
                    consistent(
                        &(0..300).map(|n| Some(n * 60)).collect::<Vec<_>>(),
                        &DataType::Timestamp(TimeUnit::Nanosecond, None),
                    ),
                ),
                ("k", many(300)),
            ],
        ),
    ];
    let contexts = contexts(folder.path(), &tables).await;
    for contexts in &contexts {
        evolved(&contexts.plain, folder.path()).await;
        evolved(&contexts.screened, folder.path()).await;
    }
    let mut done = Done::default();
    for (situation, sql) in SITUATIONS {
        for contexts in &contexts {
            println!("{situation}");
            done.compare(contexts, sql).await;
        }
    }
    assert!(done.screened > SITUATIONS.len() * 2, "{done:?}");
}

/// Registers tables of several files: with columns of other types, with missing columns, with a column from folder
/// names.
async fn evolved(context: &SessionContext, folder: &Path) {
    let (evolved, parts) = (folder.join("evolved"), folder.join("parts"));
    if !evolved.exists() {
        std::fs::create_dir(&evolved).unwrap();
        let keys: Vec<Option<i32>> = (0..40).map(|n| (n % 6 != 5).then_some(n)).collect();
        write(&evolved.join("0.parquet"), &[("k", column(&keys, &DataType::Int32))]);
        let wide = [("k", column(&keys, &DataType::Int64)), ("more", column(&keys, &DataType::Utf8))];
        write(&evolved.join("1.parquet"), &wide);
        for part in 0..4 {
            let part_folder = parts.join(format!("p={part}"));
            std::fs::create_dir_all(&part_folder).unwrap();
            write(&part_folder.join("0.parquet"), &[("k", column(&keys[part * 10..][..10], &DataType::Int64))]);
        }
    }
    for create in [
        format!(
            "CREATE EXTERNAL TABLE evolved (k BIGINT, more VARCHAR) STORED AS PARQUET LOCATION '{}/'",
            evolved.display()
        ),
        format!(
            "CREATE EXTERNAL TABLE parts (k BIGINT, p BIGINT) STORED AS PARQUET PARTITIONED BY (p) LOCATION '{}/'",
            parts.display()
        ),
    ] {
        context.sql(&create).await.unwrap();
    }
}

/// Situations by name; numbers are issues of DataFusion.
const SITUATIONS: &[(&str, &str)] = &[
    ("partitions that end at different times (17188)",
        "SELECT * FROM ids JOIN id_values ON ids.k = id_values.k WHERE v = 1 OR v = 299"),
    ("sides that change places (17196)",
        "SELECT * FROM ids JOIN id_values ON ids.k = id_values.k WHERE v >= 20"),
    ("NULL among the excluded (23103)", "SELECT eid FROM apart WHERE eid NOT IN (SELECT eid FROM with_null)"),
    ("NULL is asked, nothing matches (23126)", "SELECT id FROM asked WHERE id NOT IN (SELECT eid FROM apart)"),
    ("NULL is asked, nothing is excluded (23126)",
        "SELECT id FROM asked WHERE id NOT IN (SELECT eid FROM apart WHERE eid > 7)"),
    ("a condition beside NOT IN (23410)", "SELECT id FROM asked WHERE id <> 1 AND id NOT IN (SELECT eid FROM only_null)"),
    ("NOT IN with a correlation (25336)",
        "SELECT k FROM ids WHERE k NOT IN (SELECT eid FROM with_null WHERE eid < ids.k) AND k < 9"),
    ("NULL equals NULL (22964)", "SELECT * FROM with_null AS a JOIN asked AS b ON a.eid IS NOT DISTINCT FROM b.id"),
    ("sets with NULL (22964)", "SELECT id FROM asked INTERSECT SELECT eid FROM with_null"),
    ("build keys of NULL alone (17206)", "SELECT * FROM only_null JOIN asked ON eid = id"),
    ("build keys of NULL alone, as equals (17206)",
        "SELECT * FROM only_null JOIN with_null ON only_null.eid IS NOT DISTINCT FROM with_null.eid"),
    ("constants joined with a dictionary (20937)",
        "SELECT t FROM (VALUES ('1'), ('7')) AS v(c) JOIN cities ON v.c = cities.city"),
    ("two keys, one a dictionary (20696)",
        "SELECT a.t, b.t FROM cities AS a JOIN cities AS b ON a.city = b.city AND a.t = b.t"),
    ("a dictionary beside NULL as a key (24587)",
        "SELECT a.t, b.t FROM cities AS a JOIN cities AS b ON a.city IS NOT DISTINCT FROM b.city"),
    ("equal names below a join (25244)",
        "SELECT s.id, a.id, b.id, c.id FROM tb AS s JOIN (ta AS a JOIN tb AS b ON a.ty = b.id JOIN tc AS c ON b.id = c.id)
         ON s.id = b.id WHERE s.id = 'x1'"),
    ("equal names below a condition (25262)",
        "SELECT s.id, d.aid, d.bid FROM tb AS s JOIN (SELECT a.id AS aid, b.id AS bid FROM ta AS a
         LEFT JOIN tb AS b ON a.ty = b.id WHERE b.id IS NOT NULL OR a.id = 'a1') AS d ON s.id = d.bid"),
    ("equal names below a projection (25263)",
        "SELECT s.id, d.id, tag FROM ta AS s JOIN (SELECT a.id, b.id AS other, a.ty || '!' AS tag FROM ta AS a
         JOIN tb AS b ON a.ty = b.id) AS d ON s.id = d.id"),
    ("equal names below groups (25264)",
        "SELECT s.id, d.x, d.y FROM tb AS s JOIN (SELECT a.id AS x, b.id AS y FROM ta AS a LEFT JOIN tb AS b ON a.ty = b.id
         GROUP BY a.id, b.id) AS d ON s.id = d.y"),
    ("the first rows of an order, equal names (25296)",
        "SELECT o.amount, p.amount FROM orders AS o JOIN payments AS p ON o.id = p.id JOIN customers AS c ON p.id = c.id
         ORDER BY p.amount LIMIT 1"),
    ("equal names on both sides (20213)",
        "SELECT a.k, b.k, c.k FROM ids AS a JOIN ids AS b ON a.k = b.k + 1 JOIN ids AS c ON b.k = c.k WHERE c.k > 290"),
    ("more partitions than keys (21625)",
        "SELECT count(*) FROM ids WHERE k IN (SELECT k FROM id_values WHERE k IN
         (SELECT k % 3 FROM ids GROUP BY k % 3 HAVING count(*) > 5) AND v < 2)"),
    ("groups over columns in another order (21065)",
        "SELECT a.id, b.n FROM asked AS a JOIN (SELECT k, date_trunc('hour', at) AS hour, count(*) AS n
         FROM (SELECT at, k FROM events) GROUP BY k, date_trunc('hour', at)) AS b ON a.id = b.k"),
    ("smallest and largest above a join (20267)",
        "SELECT min(b.k), max(b.v) FROM asked AS a JOIN id_values AS b ON a.id = b.k"),
    ("a limit above an outer join (14335)",
        "SELECT count(*) FROM (SELECT * FROM ids AS a FULL JOIN id_values AS b ON a.k = b.k LIMIT 20)"),
    ("files with other types (25268)", "SELECT evolved.k FROM asked JOIN evolved ON id = k"),
    ("files without the key (25268)",
        "SELECT evolved.k, more FROM (VALUES ('3'), ('50'), (NULL)) AS v(c) JOIN evolved ON c = more"),
    ("files without the key, NULL as a key (25268)",
        "SELECT evolved.k, more FROM (VALUES ('3'), (NULL)) AS v(c) JOIN evolved ON c IS NOT DISTINCT FROM more"),
    ("a column of the folders (20175)", "SELECT parts.k, p FROM (VALUES (1), (9)) AS v(c) JOIN parts ON c = p"),
    ("a column of the folders and another one (20175)",
        "SELECT parts.k, p FROM ids JOIN parts ON ids.k = parts.k AND ids.k = parts.p + 10"),
    ("constants in a union",
        "SELECT id, source FROM asked JOIN (SELECT k, 'a' AS source FROM ids UNION ALL SELECT 5, 'b'
         UNION ALL SELECT NULL, 'c') AS u ON id = u.k"),
    ("an expression that fails for rows that are left out",
        "SELECT id, q.k FROM asked JOIN (SELECT 600 / k AS q, k FROM ids WHERE k > 0) AS q ON id = q.q"),
    ("the same values in all rows",
        "SELECT count(*) FROM ids AS a JOIN (SELECT 7 AS seven, k FROM id_values) AS b ON a.k = seven AND a.k < b.k"),
];
