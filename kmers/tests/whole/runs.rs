//! Whole runs of the library and of the program, on generated files, compared with a plain map.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use warpset_kmers::{
    Error, K, Progress, Screening, Settings, Table, canonical, count_bytes, count_files, count_sequences,
};

use crate::files::{Files, kmers, place, random};
use crate::reads::reverse_complement;

type Model = BTreeMap<String, u64>;

/// Repetitions of the reads to screen, so that there are several batches.
const REPEATED: usize = 500;

/// Adds the canonical k-mers of a sequence, window by window.
fn add(model: &mut Model, sequence: &[u8], k: usize) {
    for window in sequence.to_ascii_uppercase().windows(k) {
        if window.iter().all(|letter| b"ACGT".contains(letter)) {
            let mut other = window.to_vec();
            reverse_complement(&mut other);
            let kmer = String::from_utf8(window.min(&other).to_vec()).unwrap();
            *model.entry(kmer).or_default() += 1;
        }
    }
}

fn listed(table: &Table) -> Model {
    let all: Vec<(String, u64)> = table.counts().unwrap().collect();
    let model: Model = all.iter().cloned().collect();
    assert_eq!(model.len(), all.len(), "a k-mer is listed twice");
    model
}

/// Generates sequences with repeats, lower case, palindromes and letters that are no bases.
fn sequences(seed: u64, count: usize, len: u64) -> Vec<Vec<u8>> {
    let mut next = random(seed);
    let mut all: Vec<Vec<u8>> = Vec::new();
    for _ in 0..count {
        let len = next(len);
        let mut sequence: Vec<u8> = (0..len)
            .map(|_| match next(300) {
                0 => b"NnRX-"[next(5) as usize],
                1..50 => b"acgt"[next(4) as usize],
                _ => b"ACGT"[next(4) as usize],
            })
            .collect();
        if let Some(earlier) = all.last().filter(|_| next(2) == 0) {
            sequence.extend_from_slice(earlier);
        }
        if next(4) == 0 {
            sequence.extend_from_slice(&[b'A'; 70]);
            sequence.extend_from_slice(&b"ACGT".repeat(12));
        }
        all.push(sequence);
    }
    all.push(b"A".to_vec());
    all
}

fn fasta(sequences: &[Vec<u8>], line: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for (i, sequence) in sequences.iter().filter(|sequence| !sequence.is_empty()).enumerate() {
        writeln!(out, ">read{i} some words").unwrap();
        sequence.chunks(line).for_each(|line| out.extend_from_slice(&[line, b"\n"].concat()));
    }
    out
}

fn fastq(sequences: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for (i, sequence) in sequences.iter().filter(|sequence| !sequence.is_empty()).enumerate() {
        write!(out, "@read{i}\n{}\n+\n{}\n", String::from_utf8_lossy(sequence), "I".repeat(sequence.len())).unwrap();
    }
    out
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    // Two members, as `bgzip` and `cat` write them.
    let (first, second) = bytes.split_at(bytes.len() / 3);
    let member = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    [member(first), member(second)].concat()
}

fn model(sequences: &[Vec<u8>], k: usize) -> Model {
    let mut model = Model::new();
    sequences.iter().for_each(|sequence| add(&mut model, sequence, k));
    model
}

#[test]
fn counts_are_those_of_a_map() {
    let files = Files::new();
    let (first, second) = (sequences(1, 60, 400), sequences(2, 200, 150));
    let plain = files.write("a.fa", fasta(&first, 60));
    let zipped = files.write("b.fq.gz", gzip(&fastq(&second)));
    let both = [plain, zipped];
    for k in [1u32, 2, 16, 17, 31, 32, 33, 47, 55, 63] {
        let mut wanted = model(&first, k as usize);
        second.iter().for_each(|sequence| add(&mut wanted, sequence, k as usize));
        let mut tables = Vec::new();
        for threads in [1, 2, 5] {
            let table = count_files(&both, &Settings::new(k).unwrap().threads(threads)).unwrap();
            assert_eq!(listed(&table), wanted, "k = {k}, {threads} threads");
            assert_eq!((table.distinct(), table.total()), (wanted.len() as u64, wanted.values().sum()));
            tables.push(table);
        }
        assert!(tables.iter().all(|table| *table == tables[0]));
        let some = wanted.iter().next().unwrap();
        assert_eq!(tables[0].count(some.0.to_lowercase().as_bytes()).unwrap(), *some.1);

        let often = count_files(&both, &Settings::new(k).unwrap().least(3)).unwrap();
        wanted.retain(|_, copies| *copies >= 3);
        assert_eq!(listed(&often), wanted);

        let path = files.path("table");
        tables[0].save(&path).unwrap();
        assert_eq!(Table::load(&path).unwrap(), tables[0]);
        assert_eq!(Table::load(&path).unwrap().k().get(), k);
    }
}

#[test]
fn small_budgets_take_rounds_and_tiny_ones_are_refused() {
    let sequences = sequences(3, 60, 20_000);
    let bytes = fasta(&sequences, 80).repeat(6);
    let settings = Settings::new(31).unwrap().threads(1);
    let wanted = count_bytes(&bytes, &settings).unwrap();
    assert!(wanted.distinct() > 500_000 && wanted.total() >= 6 * wanted.distinct(), "{}", wanted.distinct());
    assert!(8 * wanted.total() > 24 << 20, "all k-mers together would fit");
    for threads in [1, 2] {
        let settings = Settings::new(31).unwrap().threads(threads).memory(24 << 20);
        assert!(count_bytes(&bytes, &settings).unwrap() == wanted, "{threads}");
    }
    assert!(matches!(count_bytes(&bytes, &settings.clone().memory(1 << 20)), Err(Error::BudgetTooSmall { .. })));
    let refused = count_bytes(&bytes, &settings.memory(12 << 20));
    assert!(matches!(refused, Err(Error::OverBudget { needed, allowed, .. }) if needed > allowed), "{refused:?}");
}

/// Checks that threads without work are not started, and no number ends the process.
#[test]
fn any_number_of_threads_and_bytes() {
    let files = Files::new();
    let bytes = b">a\nACGTACGTAC\n";
    files.write("a.fa", bytes);
    let wanted = count_bytes(bytes, &Settings::new(3).unwrap()).unwrap();
    let start = Instant::now();
    for number in [0, 1, 1 << 40, usize::MAX] {
        let settings = Settings::new(3).unwrap().threads(number);
        assert!(count_bytes(bytes, &settings).unwrap() == wanted, "{number}");
        assert!(count_files(&[files.path("a.fa")], &settings).unwrap() == wanted, "{number}");
        match count_bytes(bytes, &settings.memory(number as u64)) {
            Ok(table) => assert!(table == wanted && number > 1),
            Err(error) => assert!(matches!(error, Error::BudgetTooSmall { threads: 1, .. }), "{error}"),
        }
        let screened = Screening::new(&wanted).threads(number).run(&[files.path("a.fa")]).unwrap();
        assert_eq!((screened.matched, screened.unmatched), (1, 0));
    }
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn merging_is_counting_both() {
    let (first, second) = (sequences(4, 300, 900), sequences(5, 40, 300));
    let both: Vec<Vec<u8>> = first.iter().chain(&second).chain(&second).cloned().collect();
    for k in [1, 4, 16, 25, 31, 32, 33, 47, 63] {
        let count = |sequences: &[Vec<u8>]| count_bytes(&fasta(sequences, 70), &Settings::new(k).unwrap()).unwrap();
        for (a, b) in [(&first, &second), (&second, &first)] {
            let mut sum = count(a);
            sum.merge(&count(b)).unwrap();
            sum.merge(&count(&second)).unwrap();
            let mut wanted = model(&both, k as usize);
            assert_eq!(listed(&sum), wanted);
            assert!(sum == count(&both) && sum.to_bytes() == count(&both).to_bytes(), "{k}");
            sum.keep(4).unwrap();
            wanted.retain(|_, copies| *copies >= 4);
            assert_eq!(listed(&sum), wanted);
        }
    }
    let of = |k| count_bytes(b">a\nACGTACGTACGT\n", &Settings::new(k).unwrap()).unwrap();
    assert!(matches!(of(3).merge(&of(4)), Err(Error::DifferentK { left: 3, right: 4 })));
}

/// Checks that an empty table is the neutral element, and that every table can be read from its bytes and its filter.
#[test]
fn tables_begin_empty_and_are_made_of_bytes() {
    let sequences = sequences(10, 40, 300);
    for k in [1, 16, 17, 32, 33, 56, 63] {
        let settings = Settings::new(k).unwrap();
        let mut empty = Table::empty(K::new(k).unwrap()).unwrap();
        assert_eq!((empty.distinct(), empty.total(), listed(&empty)), (0, 0, Model::new()));
        assert!(Table::from_bytes(&empty.to_bytes()).unwrap() == empty && empty.k().get() == k);
        let mut table = count_bytes(&fasta(&sequences, 70), &settings).unwrap();
        empty.merge(&table).unwrap();
        assert!(empty == table);
        table.merge(&Table::empty(table.k()).unwrap()).unwrap();
        assert!(empty == table);
        let again = Table::from_bytes(&table.to_bytes()).unwrap();
        assert!(again == table && again.distinct() == table.distinct() && again.k() == table.k());
        if let Some(filter) = table.filter() {
            assert!(Table::from_filter(filter.clone()).unwrap() == table);
        }
        assert_eq!(table.filter().is_none(), k > 32);
        assert!(count_sequences(&sequences, &settings).unwrap() == table);
        assert_eq!(count_sequences([&b"AC"[..], b"", b">", b"-\n"], &Settings::new(3).unwrap()).unwrap().total(), 0);
    }
    let broken = count_sequences([&b"ACG\n>TAC"[..], b"acg", b"GT"], &Settings::new(3).unwrap()).unwrap();
    assert_eq!(listed(&broken), Model::from([("ACG".into(), 2), ("GTA".into(), 1)]));
    let filter = warpset_quotient::RankSelectQuotientFilter::builder(10).build().unwrap();
    assert!(matches!(Table::from_bytes(&filter.to_bytes()), Err(Error::NotTable { .. })));
    assert!(matches!(Table::from_bytes(b"no table"), Err(Error::Table(_))));
    assert!(matches!(canonical::<u64>(b"ACN", K::new(3).unwrap()), Err(Error::NotKmer { k: 3, .. })));
    assert_eq!(
        canonical::<u64>(b"ttG", K::new(3).unwrap()).unwrap(),
        canonical::<u64>(b"CAA", K::new(3).unwrap()).unwrap()
    );
}

/// Checks that a callback stops reading on any thread, in plain and in compressed files.
#[test]
fn callbacks_hear_of_all_bytes_and_stop() {
    let files = Files::new();
    let plain = fasta(&sequences(11, 3000, 700), 60);
    let paths = [files.write("a.fa", &plain), files.write("b.fa.gz", gzip(&plain))];
    let bytes: u64 = paths.iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    let table = count_files(&paths, &Settings::new(21).unwrap()).unwrap();
    for threads in [1, 3] {
        let (heard, sink) = (Arc::new(AtomicU64::new(0)), files.path("matched"));
        let listening = || {
            let heard = heard.clone();
            Progress::calling(move |bytes| {
                heard.fetch_max(bytes, Ordering::Relaxed);
                ControlFlow::Continue(())
            })
        };
        let settings = Settings::new(21).unwrap().threads(threads);
        assert!(count_files(&paths, &settings.clone().progress(listening())).unwrap() == table);
        assert_eq!(heard.swap(0, Ordering::Relaxed), bytes);
        let screening = Screening::new(&table).threads(threads).matched(sink);
        screening.clone().progress(listening()).run(&paths).unwrap();
        assert_eq!(heard.load(Ordering::Relaxed), bytes);
        let stop = || {
            Progress::calling(|bytes| if bytes > 300_000 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        };
        for which in [&paths[..], &paths[..1], &paths[1..]] {
            let stopped = count_files(which, &settings.clone().progress(stop()));
            assert!(matches!(stopped, Err(Error::Interrupted { bytes: 300_001.. })), "{stopped:?}");
            let stopped = screening.clone().progress(stop()).run(which);
            assert!(matches!(stopped, Err(Error::Interrupted { bytes: 300_001.. })), "{stopped:?}");
        }
    }
}

#[test]
fn histograms_count_kmers_by_copies() {
    let sequences = sequences(6, 60, 300);
    let table = count_bytes(&fasta(&sequences, 70), &Settings::new(9).unwrap()).unwrap();
    let model = model(&sequences, 9);
    let histogram = table.histogram(4).unwrap();
    assert!(table.histogram(usize::MAX).is_err());
    for copies in 0..=4u64 {
        let wanted = model.values().filter(|&&c| if copies < 4 { c == copies } else { c >= 4 }).count() as u64;
        assert_eq!(histogram[copies as usize], wanted);
    }
}

/// Checks that reads come out unchanged and in order, on any number of threads.
#[test]
fn reads_are_split_by_their_hits() {
    let files = Files::new();
    let k = 13;
    let reference = sequences(7, 20, 500);
    let mut reads = sequences(8, 20, 200);
    let pieces = reference.iter().filter(|sequence| sequence.len() > 60).map(|sequence| sequence[20..60].to_vec());
    reads.extend(pieces);
    reads.retain(|read| !read.is_empty());
    // Enough for several batches.
    let reads: Vec<Vec<u8>> = std::iter::repeat_n(reads, REPEATED).flatten().collect();
    let table = count_bytes(&fasta(&reference, 60), &Settings::new(k).unwrap()).unwrap();
    let present = model(&reference, k as usize);
    let hits = |read: &Vec<u8>| -> u64 {
        let mut of_read = Model::new();
        add(&mut of_read, read, k as usize);
        of_read.iter().filter(|(kmer, _)| present.contains_key(*kmer)).map(|(_, copies)| copies).sum()
    };
    let hits: Vec<u64> = reads.iter().take(reads.len() / REPEATED).map(hits).collect();
    let hits: Vec<u64> = std::iter::repeat_n(hits, REPEATED).flatten().collect();
    for (min_hits, threads, input) in [(1, 1, fastq(&reads)), (5, 3, gzip(&fasta(&reads, 50)))] {
        let input = files.write("reads", &input);
        let plain = if min_hits == 1 { fastq(&reads) } else { fasta(&reads, 50) };
        let (matched, unmatched) = (files.path("yes"), files.path("no"));
        let screening = Screening::new(&table).min_hits(min_hits).threads(threads);
        let screened =
            screening.clone().matched(&matched).unmatched(&unmatched).run(std::slice::from_ref(&input)).unwrap();
        let yes = hits.iter().filter(|hits| **hits >= min_hits).count() as u64;
        assert!(yes > REPEATED as u64 && yes < reads.len() as u64);
        assert_eq!((screened.matched, screened.unmatched), (yes, reads.len() as u64 - yes));
        let bases = reads.iter().map(|read| read.len() as u64).sum::<u64>();
        assert_eq!(screened.matched_bases + screened.unmatched_bases, bases);
        // Each record begins with its mark; qualities here never do.
        let records = |bytes: &[u8]| -> Vec<String> {
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            text.split_inclusive(['@', '>'])
                .map(str::to_owned)
                .collect::<String>()
                .split(['@', '>'])
                .skip(1)
                .map(str::to_owned)
                .collect()
        };
        let all = records(&plain);
        let of = |wanted: bool| -> Vec<String> {
            let both = all.iter().zip(&hits);
            both.filter(|(_, hits)| (**hits >= min_hits) == wanted).map(|(record, _)| record.clone()).collect()
        };
        assert!(records(&fs::read(&matched).unwrap()) == of(true));
        assert!(records(&fs::read(&unmatched).unwrap()) == of(false));
        for (matched, unmatched) in [(&input, &unmatched), (&matched, &matched)] {
            let same = screening.clone().matched(matched).unmatched(unmatched).run(std::slice::from_ref(&input));
            assert!(matches!(same, Err(Error::SameFile { .. })));
        }
    }
    assert!(Table::load(files.path("reads")).is_err());
}

#[test]
fn bad_input_is_an_error_that_names_it() {
    let files = Files::new();
    let settings = |k| Settings::new(k).unwrap().threads(2);
    let of = |path: &Path, k| count_files(&[path.to_owned()], &settings(k)).unwrap_err();
    assert!(matches!(Settings::new(0), Err(Error::InvalidK { k: 0, .. })) && Settings::new(64).is_err());
    assert!(matches!(count_files(&[], &settings(3)), Err(Error::NoInput)));
    assert!(matches!(of(&files.path("missing"), 3), Error::Read { .. }));
    assert!(matches!(of(&files.write("text", b"hello world\n"), 3), Error::NotSequence { .. }));
    assert!(matches!(of(&files.write("short", b">a\nACGNT\n"), 4), Error::NoKmers { k: 4 }));
    let zipped = gzip(&fasta(&sequences(9, 50, 500), 60));
    assert!(matches!(of(&files.write("cut.gz", &zipped[..zipped.len() - 9]), 5), Error::Read { .. }));
    assert!(matches!(of(&files.write("cut.fq", b"@a\nACGT\n+\nII"), 3), Error::NotSequence { .. }));
    // The second of two files, with threads that wait for the first.
    let good = files.write("good", fasta(&sequences(9, 50, 500), 60));
    let both = [good, files.path("text")];
    for threads in [1, 2, 4] {
        let counted = count_files(&both, &settings(5).threads(threads));
        assert!(matches!(counted, Err(Error::NotSequence { path, .. }) if path == both[1]));
    }

    let table = count_bytes(b">a\nACGTACGTACGT\n", &settings(3)).unwrap();
    let path = files.path("table");
    table.save(&path).unwrap();
    assert!(matches!(table.count(b"ACGT"), Err(Error::NotKmer { k: 3, .. })));
    assert!(matches!(table.count(b"ANG"), Err(Error::NotKmer { .. })));
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    assert!(matches!(Table::load(files.write("damaged", &bytes)), Err(Error::Table(_))));
    assert!(matches!(Table::load(files.path("text")), Err(Error::NotTable { .. })));
    let other = warpset_quotient::RankSelectQuotientFilter::builder(10).build().unwrap();
    other.save(&path).unwrap();
    assert!(matches!(Table::load(&path), Err(Error::NotTable { .. })));
}

/// Returns the output of the program, which must succeed.
fn done(args: &[&str]) -> String {
    let output = kmers(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_program_counts_and_screens_whole_genomes() {
    let files = Files::new();
    let name = |name: &str| files.path(name).to_str().unwrap().to_owned();
    let data = |name: &str| format!("{}/../data/{name}", place("CARGO_MANIFEST_DIR", env!("CARGO_MANIFEST_DIR")));
    let (mg1655, dh1) = (data("ecoli-mg1655.fasta.gz"), data("ecoli-dh1.fasta.gz"));
    done(&["count", "-k", "31", "--backend", "cpu", "-o", &name("mg1655"), &mg1655]);
    done(&["count", "-k", "31", "--backend", "cpu", "-o", &name("dh1"), &dh1]);
    done(&["merge", "-o", &name("both"), &name("mg1655"), &name("dh1")]);
    // Numbers of `data/README.md`: all k-mers, and different ones.
    for (table, all, distinct) in [
        ("mg1655", 4_639_645, 4_554_207),
        ("dh1", 4_630_677, 4_538_929),
        ("both", 4_639_645 + 4_630_677, 4_554_207 + 4_538_929 - 4_530_537),
    ] {
        let histogram = done(&["histogram", &name(table), "--most", "1000000"]);
        let lines = histogram.lines().map(|line| line.split_once('\t').unwrap());
        let counts: Vec<(u64, u64)> = lines.map(|(copies, n)| (copies.parse().unwrap(), n.parse().unwrap())).collect();
        let sum = counts.iter().map(|(copies, n)| copies * n).sum::<u64>();
        assert_eq!((sum, counts.iter().map(|count| count.1).sum()), (all, distinct), "{table}");
    }
    // Windows of one genome in the other are at least as many as their common different k-mers.
    let (matched, unmatched) = (name("matched.fa"), name("unmatched.fa"));
    let least = ["--min-hits", "4530537", "--matched", &matched, "--unmatched", &unmatched];
    done(&[&["screen", &name("mg1655"), &dh1][..], &least].concat());
    assert!(fs::metadata(&matched).unwrap().len() > 4_630_677 && fs::metadata(&unmatched).unwrap().len() == 0);
}

#[test]
fn the_program_counts_merges_lists_and_screens() {
    let files = Files::new();
    let name = |name: &str| files.path(name).to_str().unwrap().to_owned();
    let sequences = sequences(10, 30, 300);
    files.write("a.fa", fasta(&sequences, 60));
    files.write("b.fq.gz", gzip(&fastq(&sequences)));
    done(&["count", "-k", "11", "--max-memory", "200M", "--threads", "2", "-o", &name("a"), &name("a.fa")]);
    done(&["count", "-k", "11", "-o", &name("b"), &name("b.fq.gz")]);
    done(&["merge", "-o", &name("sum"), &name("a"), &name("b")]);
    let wanted: Model = model(&sequences, 11).into_iter().map(|(kmer, copies)| (kmer, 2 * copies)).collect();
    let list = done(&["list", &name("sum")]);
    let list: Model = list
        .lines()
        .map(|line| {
            let (kmer, copies) = line.split_once('\t').unwrap();
            (kmer.to_owned(), copies.parse().unwrap())
        })
        .collect();
    assert_eq!(list, wanted);
    let histogram = done(&["histogram", &name("sum"), "--most", "2"]);
    assert_eq!(histogram, format!("2\t{}\n", wanted.len()));
    let unmatched = name("no.fa");
    done(&["screen", &name("sum"), &name("a.fa"), "--min-hits", "1000000", "--unmatched", &unmatched]);
    assert_eq!(fs::read(&unmatched).unwrap(), fs::read(files.path("a.fa")).unwrap());

    // A table is written to a pipe as to a file.
    #[cfg(unix)]
    {
        let piped = kmers(&["merge", "-o", "/dev/stdout", &name("a"), &name("b")]);
        assert!(piped.status.success() && piped.stdout == fs::read(name("sum")).unwrap());
    }

    for (args, says) in [
        (vec!["count", "-k", "64", "-o", "x", "y"], "1 to 63"),
        (vec!["count", "-o", "x", "/nowhere/y.fa"], "/nowhere/y.fa"),
        (vec!["histogram", "Cargo.toml"], "Cargo.toml"),
        (vec!["count", "-o", "/nowhere/table", &name("a.fa")], "/nowhere/table"),
    ] {
        let output = kmers(&args);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(says) && !error.contains("panicked"), "{error}");
    }
}
