//! Lookups on a device, on the emulator and on CUDA: the same answers as on the host.

use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};
use warpset_gpu::{Device, EmulatorOptions, testing};

use crate::{column, error, integers, table, with_config};

const QUERIES: &[&str] = &[
    "SELECT might_contain((SELECT bloom_filter_agg(k, 3000) FROM facts WHERE k % 3 = 0), k) FROM facts",
    "SELECT might_contain((SELECT bloom_filter_agg(CAST(k AS VARCHAR), 3000) FROM facts WHERE k % 3 = 0),
                          CAST(k AS VARCHAR)) FROM facts",
    // Filters that change within a batch, more filters than stay on the device, and rows without a filter.
    "SELECT might_contain(f, k) FROM facts JOIN
         (SELECT k % 7 AS g, bloom_filter_agg(k, 3000) AS f FROM facts WHERE k % 7 < 6 GROUP BY g) ON g = k % 7 ORDER BY k",
    "SELECT might_contain((SELECT bloom_filter_agg(k) FROM facts WHERE k < 0), k) FROM facts",
    "SELECT might_contain((SELECT fuse_filter_agg(k) FROM facts WHERE k % 3 = 0), k) FROM facts",
];

fn facts() -> SessionContext {
    let context = with_config(SessionConfig::new().with_target_partitions(1).with_batch_size(4096));
    table(&context, "facts", &[("k", integers(0..9000))], 1);
    context
}

#[tokio::test]
async fn a_device_gives_the_answers_of_the_processor() -> Result<()> {
    let host = facts();
    for device in testing::devices(1) {
        for least_rows in [0, 1000, 100_000] {
            let context = facts();
            context.register_udf(warpset_datafusion::might_contain_on(&device, least_rows).as_ref().clone());
            for sql in QUERIES {
                assert_eq!(&column(&context, sql).await?, &column(&host, sql).await?, "{least_rows}: {sql}");
            }
            let wrong = "SELECT might_contain(arrow_cast(CAST(k AS VARCHAR), 'Binary'), k) FROM facts";
            assert_eq!(error(&context, wrong).await, error(&host, wrong).await);
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_filter_without_room_on_the_device_is_asked_on_the_processor() -> Result<()> {
    let device = Device::emulator_with(EmulatorOptions::default().memory_bytes(1000));
    let (host, context) = (facts(), facts());
    context.register_udf(warpset_datafusion::might_contain_on(&device, 1).as_ref().clone());
    assert_eq!(&column(&context, QUERIES[0]).await?, &column(&host, QUERIES[0]).await?);
    Ok(())
}
