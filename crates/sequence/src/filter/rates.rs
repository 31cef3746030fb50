//! False-positive rates, in theory and of a given filter.
//!
//! The number of s-mers varies much between blocks, because s-mers arrive in runs. The number of runs per block is
//! Poisson distributed, and a run has 1 to `w` s-mers, each length about equally likely, where `w` is the number of
//! m-mers of an s-mer. A foreign s-mer is found with the rate of its block, and a k-mer if all of its s-mers are. The
//! s-mers of a k-mer lie in one block or in several: from one s-mer to the next the block changes with probability `2 /
//! (w + 1)`.

use warpset_core::sequence_filter::{BITS_PER_SMER, Shape};

use super::layout::Layout;

/// 32-bit words per block.
const WORDS: f64 = 8.0;
/// Runs per block above which all blocks are taken to have the mean load.
const MANY_RUNS: f64 = 500.0;

/// Returns the probability that the block changes from one s-mer to the next.
fn density(shape: Shape) -> f64 {
    2.0 / f64::from(shape.window() + 1)
}

/// Calls `f(s-mers, probability)` for the loads of blocks after insertion of `kmers` k-mers.
fn loads(layout: &Layout, kmers: u64, mut f: impl FnMut(f64, f64)) {
    let shape = layout.shape();
    let mean = kmers as f64 / layout.blocks() as f64;
    let runs = mean * density(shape);
    if runs > MANY_RUNS {
        return f(mean, 1.0);
    }
    // Panjer's recursion for a Poisson number of runs of 1 to `w` s-mers.
    let w = shape.window() as usize;
    let spread = 12.0 * (mean * f64::from(shape.window())).sqrt();
    let most = (mean + spread) as usize + 16 * w;
    let mut probabilities = vec![0.0; most + 1];
    probabilities[0] = (-runs).exp();
    for load in 1..=most {
        let sum: f64 = (1..=w.min(load)).map(|run| run as f64 * probabilities[load - run]).sum();
        probabilities[load] = runs / load as f64 * sum / w as f64;
    }
    probabilities.into_iter().enumerate().for_each(|(load, probability)| f(load as f64, probability));
}

/// Returns the probability that one bit of a block is clear under a load of s-mers, to a power.
fn clear(load: f64, power: i32) -> f64 {
    let by_one = (1.0 - 1.0 / 32.0f64).powi(BITS_PER_SMER as i32 * power);
    (1.0 - (1.0 - by_one) / WORDS).powf(load)
}

/// Returns the rate at which k-mers are found by chance. `powers[i]` is the mean of the `i + 1`-th power of the rates
/// at which s-mers are found in their blocks.
fn of_kmers(shape: Shape, powers: &[f64]) -> f64 {
    let change = density(shape);
    let mut rates: Vec<f64> = vec![1.0];
    for n in 1..=powers.len() {
        // The first `j` s-mers share a block, and the next one is in another block.
        let parts = (1..n).map(|j| (1.0 - change).powi(j as i32 - 1) * change * powers[j - 1] * rates[n - j]);
        rates.push(parts.sum::<f64>() + (1.0 - change).powi(n as i32 - 1) * powers[n - 1]);
    }
    rates[powers.len()].min(1.0)
}

/// Adds `weight` times the powers of a rate.
fn add_powers(powers: &mut [f64], rate: f64, weight: f64) {
    let mut power = weight;
    for sum in powers {
        power *= rate;
        *sum += power;
    }
}

pub(super) fn expected_fpr(layout: &Layout, kmers: u64) -> f64 {
    let mut powers = vec![0.0; layout.shape().smers() as usize];
    loads(layout, kmers, |load, probability| {
        // Two bits of one word: the mean of the square of the fraction of set bits.
        let rate = 1.0 - 2.0 * clear(load, 1) + clear(load, 2);
        add_powers(&mut powers, rate, probability);
    });
    of_kmers(layout.shape(), &powers)
}

pub(super) fn predicted_fill(layout: &Layout, kmers: u64) -> f64 {
    let mut fill = 0.0;
    loads(layout, kmers, |load, probability| fill += probability * (1.0 - clear(load, 1)));
    fill
}

/// Estimates the false-positive rate of a filter with these words.
pub(super) fn fpr(layout: &Layout, words: &[u64]) -> f64 {
    let count = layout.shape().smers() as usize;
    let square = |half: u32| (f64::from(half.count_ones()) / 32.0).powi(BITS_PER_SMER as i32);
    let parts = warpset_base::parallel::map(words.chunks(1 << 14), |words| {
        let mut powers = vec![0.0; count];
        for block in words.chunks(4) {
            let rate = block.iter().map(|&word| square(word as u32) + square((word >> 32) as u32)).sum::<f64>() / WORDS;
            add_powers(&mut powers, rate, 1.0);
        }
        powers
    });
    let mean = |i: usize| parts.iter().map(|powers| powers[i]).sum::<f64>() / layout.blocks() as f64;
    of_kmers(layout.shape(), &(0..count).map(mean).collect::<Vec<f64>>())
}
