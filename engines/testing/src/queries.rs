//! Queries of the tables that every engine has to answer as DataFusion alone does.

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
];
