//! The canonical 31-mers of all genomes, counted exactly: every count against a sorted array of all of them.

use indicatif::HumanCount;
use rayon::prelude::*;
use warpset::prelude::Count;
use warpset::quotient::{Duplicates, RankSelectBuilder, RankSelectQuotientFilter};

use bench_frame::suite::{Session, Setup, Step, Target, Threads};
use bench_record::Record;

/// Bits of a 31-mer.
const KEY_BITS: u32 = 62;
/// The last line of the histogram: that many copies and more.
const MOST: usize = 8;

/// Makes the step, on the CPU.
pub fn steps(setup: &Setup) -> Vec<Step> {
    if setup.cpu() { vec![Step::new("quotient: k-mers counted exactly", count)] } else { Vec::new() }
}

fn count(session: &mut Session) -> anyhow::Result<()> {
    let input = session.input();
    let kmers: Vec<u64> = input.genomes.iter().flat_map(|genome| &genome.kmers).copied().collect();
    if kmers.is_empty() {
        return Ok(());
    }
    let name = input.genomes.iter().map(|genome| genome.name.as_str()).collect::<Vec<_>>().join(" + ");
    let mut sorted = kmers.clone();
    sorted.par_sort_unstable();
    let truth: Vec<(u64, u64)> = sorted.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u64)).collect();

    // Copies never take more slots than there are of them; the number of different k-mers is what one may know
    // beforehand.
    let slots = truth.iter().map(|(_, copies)| 1 + u64::from(*copies > 1)).sum();
    let layout = RankSelectQuotientFilter::builder(slots).exact(KEY_BITS).layout()?;
    let builder = RankSelectBuilder::with_layout(layout).duplicates(Duplicates::Counted);
    for &threads in session.threads(true) {
        let (seconds, filter) = session.made(threads, || Ok(builder.build_from(&kmers)?))?;
        let mut listed: Vec<(u64, u64)> = filter.key_counts()?.collect();
        listed.par_sort_unstable();
        let bits = 8.0 * filter.memory_bytes() as f64 / truth.len() as f64;
        let row = |operation: &str, n: usize, seconds: f64| {
            let row = Record::new("quotient", operation, n).time(seconds).by("exact filter with counters", false);
            let mut row = row.param("study", "k-mers").param("input", name.clone()).param("key", "u64");
            row.bits_per_item = Some(bits);
            row
        };
        let target = Target::Cpu;
        session.add(&target, threads, row("count k-mers", kmers.len(), seconds), listed == truth);

        let asked: Vec<u64> = truth.iter().map(|(kmer, _)| *kmer).collect();
        let mut counts = vec![0; asked.len()];
        let seconds = session.time(threads, &mut counts, |counts| Ok(filter.count_bulk_into(&asked, counts)?))?;
        let right = counts.iter().eq(truth.iter().map(|(_, copies)| copies));
        session.add(&target, threads, row("count, present", asked.len(), seconds), right);

        let histogram = filter.count_histogram(MOST)?;
        let mut wanted = vec![0; MOST + 1];
        truth.iter().for_each(|(_, copies)| wanted[MOST.min(*copies as usize)] += 1);
        session.verify(histogram == wanted, || "k-mers: the histogram is wrong".into());
        if threads == Threads::One {
            print(session, &name, kmers.len(), truth.len(), &histogram);
        }
    }
    Ok(())
}

fn print(session: &Session, name: &str, all: usize, distinct: usize, histogram: &[u64]) {
    let lines = histogram.iter().enumerate().filter(|(_, kmers)| **kmers > 0).map(|(copies, kmers)| {
        let more = if copies == MOST { " and more" } else { "" };
        format!("  {copies}{more}: {}", HumanCount(*kmers))
    });
    session.print(&format!(
        "31-mers of {name}, counted exactly: {}, of which {} are different. Copies, and how many have them:\n{}\n",
        HumanCount(all as u64),
        HumanCount(distinct as u64),
        lines.collect::<Vec<_>>().join("\n")
    ));
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use bench_frame::input::genome::Genome;

    use super::*;
    use bench_frame::suite::Input;

    #[test]
    fn small_genomes_are_counted() {
        let of = |text: String| Genome::read("small", Path::new("small"), std::io::Cursor::new(text)).unwrap();
        let repeated = "ACGTTGCATTGACCGTAAGT".repeat(9);
        let genomes = vec![of(format!(">a\n{repeated}\n")), of(format!(">b\n{repeated}TTTGAC\n"))];
        let rows = Session::rows_with(Input { genomes, ..Input::default() }, vec![Step::new("k-mers", count)]);
        let of = |operation: &str| rows.iter().filter(|row| row.operation == operation && row.checked).count();
        assert!(of("count k-mers") > 0 && of("count k-mers") == of("count, present"), "{rows:?}");
    }
}
