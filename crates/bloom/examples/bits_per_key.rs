//! Bits a key that each filter needs for a rate, by theory: the table of `docs/bloom.md`.

use warpset_bloom::{BlockedBloom, Error, Layout, RaoBloom, SplitBlockBloom};

const KEYS: u64 = 10_000_000;
const RATES: [f64; 4] = [0.05, 0.01, 0.001, 0.0001];

fn row<L: Layout>(name: &str, layout: impl Fn(f64) -> Result<L, Error>) -> Result<(), Error> {
    print!("| {name} |");
    for fpr in RATES {
        let layout = layout(fpr)?;
        print!(" {:.1} (k = {}) |", 32.0 * layout.words() as f64 / KEYS as f64, layout.hashes());
    }
    println!();
    Ok(())
}

fn main() -> Result<(), Error> {
    println!("| filter | 5% | 1% | 0.1% | 0.01% |\n| --- | --- | --- | --- | --- |");
    row("split-block", |fpr| SplitBlockBloom::builder(KEYS).fpr(fpr).layout())?;
    for (block, word) in [(64, 64), (128, 64), (256, 32), (512, 64), (1024, 64)] {
        row(&format!("blocked, {block} bits in words of {word}"), |fpr| {
            BlockedBloom::builder(KEYS).fpr(fpr).block_bits(block).word_bits(word).layout()
        })?;
    }
    for choices in [1, 2] {
        row(&format!("Rao, choices: {choices}"), |fpr| RaoBloom::builder(KEYS).fpr(fpr).choices(choices).layout())?;
    }
    Ok(())
}
