//! Generated joins of generated tables: all kinds of joins and types of keys, NULLs, duplicates, empty tables.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, FixedSizeBinaryBuilder, Int32Array, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::prelude::SessionContext;
use proptest::prelude::*;

use crate::{config, counted, run, screened, subqueries, table};

/// Returns the types of keys; the last two have no filter.
fn types() -> Vec<DataType> {
    use DataType::*;
    let dictionary = |values: DataType| Dictionary(Box::new(Int32), Box::new(values));
    vec![
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Date32,
        Date64,
        Time32(TimeUnit::Second),
        Time64(TimeUnit::Nanosecond),
        Timestamp(TimeUnit::Microsecond, None),
        Timestamp(TimeUnit::Second, Some("+02:00".into())),
        Duration(TimeUnit::Millisecond),
        Decimal32(9, 2),
        Decimal64(18, 2),
        Decimal128(20, 2),
        Decimal256(40, 2),
        Utf8,
        LargeUtf8,
        Utf8View,
        Binary,
        LargeBinary,
        BinaryView,
        FixedSizeBinary(4),
        dictionary(Utf8),
        dictionary(Int64),
        Float64,
        Boolean,
    ]
}

/// Builds a column of this type from small numbers.
pub(crate) fn column(numbers: &[Option<i32>], kind: &DataType) -> ArrayRef {
    let small: ArrayRef = Arc::new(numbers.iter().copied().collect::<Int32Array>());
    let wide: ArrayRef = Arc::new(numbers.iter().map(|number| number.map(i64::from)).collect::<Int64Array>());
    let through = |step: &DataType| cast(&cast(&small, step).unwrap(), kind).unwrap();
    match kind {
        DataType::Date32 | DataType::Time32(_) => cast(&small, kind).unwrap(),
        DataType::Date64 | DataType::Time64(_) | DataType::Timestamp(..) | DataType::Duration(_) => {
            cast(&wide, kind).unwrap()
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => through(&DataType::Utf8),
        DataType::Dictionary(_, values) => through(values),
        DataType::FixedSizeBinary(width) => {
            let mut builder = FixedSizeBinaryBuilder::new(*width);
            for number in numbers {
                match number {
                    Some(number) => builder.append_value(number.to_be_bytes()).unwrap(),
                    None => builder.append_null(),
                }
            }
            Arc::new(builder.finish())
        }
        kind => cast(&small, kind).unwrap(),
    }
}

/// Join conditions.
const CONDITIONS: &[&str] = &[
    "a.k = b.k",
    "a.k = b.k AND a.l = b.l",
    "(a.k IS NOT DISTINCT FROM b.k)",
    "(a.k IS NOT DISTINCT FROM b.k) AND (a.l IS NOT DISTINCT FROM b.l)",
    "a.l = b.l AND a.k = b.k AND a.v + b.w > 20",
];

/// Queries, with `{on}` for the condition.
pub(crate) const JOINS: &[&str] = &[
    "SELECT a.v, b.w FROM a JOIN b ON {on}",
    "SELECT a.v, b.w FROM a LEFT JOIN b ON {on}",
    "SELECT a.v, b.w FROM a RIGHT JOIN b ON {on}",
    "SELECT a.v, b.w FROM a FULL JOIN b ON {on}",
    "SELECT a.v FROM a WHERE EXISTS (SELECT 1 FROM b WHERE {on})",
    "SELECT a.v FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE {on})",
    "SELECT a.v FROM a WHERE a.v < 3 OR EXISTS (SELECT 1 FROM b WHERE {on})",
    "SELECT a.v FROM a WHERE a.k IN (SELECT b.k FROM b WHERE b.w > 3)",
    "SELECT a.v FROM a WHERE a.k NOT IN (SELECT b.k FROM b WHERE b.w > 3)",
    "SELECT a.v, b.w FROM a JOIN b ON {on} WHERE b.w < 10",
    "SELECT a.v, b.w, c.v FROM a JOIN b ON {on} JOIN a AS c ON b.l = c.l",
    "SELECT a.v, b.w, c.w FROM a LEFT JOIN b ON {on} JOIN b AS c ON b.l = c.l AND a.k = c.k",
    "SELECT a.v, b.w, b.n FROM a JOIN (SELECT k, l, max(w) AS w, count(*) AS n FROM b GROUP BY k, l) AS b ON {on}",
    "SELECT a.v, b.w FROM a JOIN (SELECT k, l, w FROM b UNION ALL SELECT k, l, v FROM a) AS b ON {on}",
    "SELECT a.v, b.w FROM a JOIN (SELECT * FROM b ORDER BY w LIMIT 7) AS b ON {on}",
    "SELECT a.v, b.w, b.r FROM a JOIN (SELECT *, row_number() OVER (ORDER BY w) AS r FROM b) AS b ON {on}",
    "SELECT a.v, b.w FROM a JOIN (SELECT b.k, c.l, b.w FROM b LEFT JOIN a AS c ON b.k = c.k) AS b ON {on}",
    "SELECT a.v, b.w FROM a JOIN (SELECT c.k, b.l, b.w FROM b FULL JOIN a AS c ON b.k = c.k) AS b ON {on}",
    "SELECT a.v, b.w FROM a JOIN (SELECT DISTINCT k, l, w % 3 AS w FROM b) AS b ON {on}",
    "SELECT a.v, b.w FROM a JOIN (SELECT k, l, w FROM b GROUP BY GROUPING SETS ((k, l, w), (l, w))) AS b ON {on}",
];

#[derive(Debug, Clone)]
struct Case {
    a: Vec<(Option<i32>, Option<i32>)>,
    b: Vec<(Option<i32>, Option<i32>)>,
    kind: usize,
    condition: usize,
    partitions: usize,
    batches: usize,
    batch_size: usize,
    broadcast: bool,
    engine: bool,
    reorder: bool,
}

fn case() -> impl Strategy<Value = Case> {
    let key = |most: i32| prop_oneof![4 => (0..most).prop_map(Some), 1 => Just(None)];
    let rows = |most: usize| prop::collection::vec((key(25), key(4)), 0..most);
    let few_or_many = move || prop_oneof![rows(4), rows(60)];
    let settings = (1usize..4, 1usize..6, prop_oneof![Just(8192usize), 1usize..20], any::<[bool; 3]>());
    (few_or_many(), few_or_many(), 0..types().len(), 0..CONDITIONS.len(), settings).prop_map(
        |(a, b, kind, condition, (partitions, batches, batch_size, [broadcast, engine, reorder]))| Case {
            a,
            b,
            kind,
            condition,
            partitions,
            batches,
            batch_size,
            broadcast,
            engine,
            reorder,
        },
    )
}

/// Returns contexts with the tables: plain, screened by operators, screened by subqueries.
async fn contexts(case: &Case) -> [SessionContext; 3] {
    let mut session = config(case.partitions)
        .with_batch_size(case.batch_size)
        .set_bool("datafusion.optimizer.enable_join_dynamic_filter_pushdown", case.engine)
        .set_bool("datafusion.optimizer.join_reordering", case.reorder);
    if case.broadcast {
        session = session.set_usize("datafusion.optimizer.hash_join_single_partition_threshold", 1 << 20);
    }
    let kind = &types()[case.kind];
    let plain = SessionContext::new_with_config(session.clone());
    let contexts = [plain, screened(session.clone()).await, subqueries::screened(session).await];
    for context in &contexts {
        for (name, number, rows) in [("a", "v", &case.a), ("b", "w", &case.b)] {
            let (k, l): (Vec<_>, Vec<_>) = rows.iter().copied().unzip();
            let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows.len() as i64));
            let columns = [("k", column(&k, kind)), ("l", column(&l, &DataType::Int32)), (number, numbers)];
            table(context, name, &columns, case.partitions, case.batches);
        }
    }
    contexts
}

/// Runs a query plain and screened. Returns both results, whether there were filters, and the number of dropped rows.
async fn compare(case: &Case, join: &str) -> (Vec<String>, Vec<String>, bool, usize) {
    let contexts = contexts(case).await;
    let query = join.replace("{on}", CONDITIONS[case.condition]);
    let (expected, _) = run(&contexts[0], &query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
    let (found, plan) = run(&contexts[1], &query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
    let has =
        datafusion::physical_plan::displayable(plan.as_ref()).indent(true).to_string().contains("FilterBuildExec");
    (expected, found, has, counted(&plan, "FilterProbeExec", "rows_dropped"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_join_has_the_same_rows(case in case(), first in 0..JOINS.len()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        // A few queries per pair of tables.
        for join in 0..4 {
            let join = JOINS[(first + join * 5) % JOINS.len()];
            let (expected, found, ..) = runtime.block_on(compare(&case, join));
            prop_assert_eq!(found, expected, "{}", join);
        }
    }
}

/// Runs a query plain and screened by subqueries. Returns both results, and whether there were filters.
async fn compare_subqueries(case: &Case, join: &str) -> (Vec<String>, Vec<String>, bool) {
    let [plain, _, context] = contexts(case).await;
    let query = join.replace("{on}", CONDITIONS[case.condition]);
    let (expected, _) = run(&plain, &query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
    let (found, plan) = run(&context, &query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
    let text = datafusion::physical_plan::displayable(plan.as_ref()).indent(true).to_string();
    (expected, found, text.contains("might_contain"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_join_has_the_same_rows_by_subqueries(case in case(), first in 0..JOINS.len()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for join in 0..4 {
            let join = JOINS[(first + join * 5) % JOINS.len()];
            let (expected, found, _) = runtime.block_on(compare_subqueries(&case, join));
            prop_assert_eq!(found, expected, "{}", join);
        }
    }
}

/// Checks that each type of key is screened by a subquery, alone and with another key.
#[tokio::test]
async fn every_type_of_key_is_screened_by_subqueries() {
    let rows = |keys: std::ops::Range<i32>| keys.map(|key| (Some(key), Some(key % 4))).collect::<Vec<_>>();
    for condition in 0..2 {
        for (kind, name) in types().into_iter().enumerate() {
            let case = Case {
                a: rows(0..3),
                b: rows(2..60),
                kind,
                condition,
                partitions: 2,
                batches: 3,
                batch_size: 8192,
                broadcast: false,
                engine: true,
                reorder: false,
            };
            let (expected, found, has) = compare_subqueries(&case, JOINS[0]).await;
            assert_eq!(found, expected, "{name}");
            // The other key of the second condition is an integer.
            assert_eq!(has, condition == 1 || !matches!(name, DataType::Float64 | DataType::Boolean), "{name}");
        }
    }
}

/// Checks that the cases above test something: each type of key has a filter that drops rows, and each kind of join
/// that may have a filter has one.
#[tokio::test]
async fn every_type_of_key_and_every_safe_join_is_screened() {
    let rows = |keys: std::ops::Range<i32>| keys.map(|key| (Some(key), Some(key % 4))).collect::<Vec<_>>();
    let case = Case {
        a: rows(0..3),
        b: rows(2..60),
        kind: 0,
        condition: 0,
        partitions: 2,
        batches: 3,
        batch_size: 8192,
        broadcast: false,
        engine: true,
        reorder: false,
    };
    for (kind, name) in types().into_iter().enumerate() {
        let (expected, found, has, dropped) = compare(&Case { kind, ..case.clone() }, JOINS[0]).await;
        assert_eq!(found, expected, "{name}");
        let usable = !matches!(name, DataType::Float64 | DataType::Boolean);
        assert_eq!((has, dropped > 20), (usable, usable), "{name}: {dropped}");
    }
    let mut screened = Vec::new();
    for join in JOINS {
        let (expected, found, has, _) = compare(&case, join).await;
        assert_eq!(found, expected, "{join}");
        screened.push(has);
    }
    // The left side is built. Right and full joins keep all rows of the probe side, and `NOT IN` has its own NULL
    // rules.
    let without = [2, 3, 8].map(|join| screened[join]);
    assert_eq!(without, [false; 3]);
    assert_eq!(screened.iter().filter(|has| **has).count(), JOINS.len() - without.len(), "{screened:?}");
}
