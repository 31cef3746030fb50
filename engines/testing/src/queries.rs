//! Queries with the same answers on every engine as in DataFusion alone.

/// Aggregates, lookups and joins; each returns one row.
pub const QUERIES: &[&str] = &[
    "SELECT count(*), sum(sale) FROM facts JOIN items ON item = id WHERE kind = 7",
    "SELECT count(*), sum(sale) FROM facts JOIN items ON item = id WHERE kind = 7
     AND might_contain((SELECT bloom_filter_agg(id, 1000, 0.001) FROM items WHERE kind = 7), item)",
    "SELECT bloom_filter_agg(item, 20011) FROM facts",
    "SELECT count(*), sum(kind) FROM (SELECT kind, bloom_filter_agg(id, 500) AS f FROM items GROUP BY kind)
     WHERE might_contain(f, kind)",
    "SELECT bloom_filter_merge(f) FROM (SELECT bloom_filter_agg(name, 1000) AS f FROM facts GROUP BY item % 10)",
    "SELECT bloom_filter_to_parquet(bloom_filter_agg(name, 1000)) FROM facts",
    "SELECT quotient_filter_agg(item, 10000) FROM facts",
    "SELECT perfect_hash_agg(name) FROM facts",
    "SELECT fuse_filter_agg(item), fuse_filter_agg(name, 16) FROM facts",
    "SELECT count(*), sum(sale) FROM facts
     WHERE might_contain((SELECT fuse_filter_agg(id, 16) FROM items WHERE kind = 7), item)",
    "SELECT sized_filter_agg(item), sized_filter_agg(key_hash(item, name), 1000000) FROM facts",
];

/// Joins that settings can screen on one side by a subquery; each returns one row.
pub const SCREENED_JOINS: &[&str] = &[
    "SELECT count(*), sum(sale) FROM facts JOIN items ON item = id WHERE kind = 7",
    "SELECT count(*), sum(sale) FROM facts WHERE item IN (SELECT id FROM items WHERE kind < 5)",
    "SELECT count(*), sum(id), sum(sale) FROM items LEFT JOIN facts ON id = item WHERE kind = 7",
    "SELECT count(*), sum(id) FROM items
     WHERE kind = 7 AND NOT EXISTS (SELECT 1 FROM facts WHERE item = id AND sale > 200000)",
    "SELECT count(*), sum(a.sale) FROM facts AS a
     JOIN (SELECT item, name FROM facts WHERE sale < 5000) AS b ON a.item = b.item AND a.name = b.name",
    "SELECT count(*), sum(a.sale) FROM facts AS a JOIN items AS b ON a.item = b.id JOIN items AS c ON a.sale = c.id
     WHERE b.kind = 7 AND c.kind < 50",
];

/// Settings that partition and screen these joins, however small the tables are.
pub const SCREENED: &[&str] = &[
    "SET datafusion.optimizer.hash_join_single_partition_threshold = 0",
    "SET datafusion.optimizer.hash_join_single_partition_threshold_rows = 0",
    "SET warpset_joins.subqueries = true",
];
