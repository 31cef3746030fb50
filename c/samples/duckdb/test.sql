-- Asks the filter that `samples/filter.c` wrote, in the current folder:
-- `duckdb -unsigned -bail -c "LOAD 'warpset.duckdb_extension'" -f test.sql`.
CREATE TABLE keys AS
    SELECT i, ((i::HUGEINT * 11400714819323198485) % 18446744073709551616)::UBIGINT AS key FROM range(200000) rows(i);
CREATE TABLE counts AS
    SELECT count(*) FILTER (i < 100000) AS members, count(*) FILTER (i >= 100000) AS others
    FROM keys, read_blob('fuse.warpset') file WHERE warpset_might_contain(file.content, key);
SELECT CASE WHEN members = 100000 AND others < 1000 THEN 'DuckDB: ' || members || ' members, ' || others || ' false positives'
            ELSE error('wrong counts: ' || members || ', ' || others) END FROM counts;
SELECT CASE WHEN warpset_might_contain(NULL, 1) IS NULL THEN 'NULL is no filter' ELSE error('NULL was a filter') END;
