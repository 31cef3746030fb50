//! What the examples measure with: keys, and shapes as arguments name them.

use std::error::Error;
use warpset_recsplit::{Builder, Hash128, Method};

/// A random number (SplitMix64).
pub fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Random ready-made hashes.
pub fn hashes(count: usize, state: &mut u64) -> Vec<Hash128> {
    (0..count).map(|_| Hash128 { high: random(state), low: random(state) }).collect()
}

/// The builder of `method:leaf size:bucket size`, or the same with `:first:second` fanouts.
pub fn builder(shape: &str) -> Result<Builder, Box<dyn Error>> {
    let parts: Vec<&str> = shape.split(':').collect();
    let [method, leaf, bucket, ref fanouts @ ..] = parts[..] else { return Err("method:leaf:bucket".into()) };
    let method = match method {
        "brute" => Method::BruteForce,
        "rotation" => Method::Rotation,
        "grouped" => Method::Grouped,
        _ => return Err("methods: brute, rotation, grouped".into()),
    };
    let builder = Builder::new().method(method).leaf_size(leaf.parse()?).bucket_size(bucket.parse()?);
    Ok(match fanouts {
        [first, second] => builder.fanouts(first.parse()?, second.parse()?),
        _ => builder,
    })
}
