//! Prints which of its arguments occurred before: with a Bloom filter on the GPU, or on the CPU if there is none.

use warpset_bloom::{SplitBlockBloom, TestAndInsert};
use warpset_gpu::Backend;

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let builder = SplitBlockBloom::builder(words.len().max(1) as u64).fpr(0.001);
    let new = match Backend::auto() {
        Backend::Cuda(device) => new(builder.on(&device).build()?, &words)?,
        Backend::Cpu(_) => new(builder.build()?, &words)?,
    };
    for (word, _) in words.iter().zip(new).filter(|(_, new)| !new) {
        println!("{word}");
    }
    Ok(())
}

/// Whether each word is the first of its kind; all are found afterwards.
fn new<F: TestAndInsert>(mut filter: F, words: &[String]) -> anyhow::Result<Vec<bool>> {
    let new = filter.test_and_insert_bulk(words)?;
    anyhow::ensure!(filter.contains_bulk(words)?.iter().all(|&there| there), "a word is missing");
    Ok(new)
}
