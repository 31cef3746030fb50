//! Indexes of all k-mers, which are sequence filters, compared with a plain set of k-mers, from every file, and by the
//! program.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use warpset_gpu::testing::devices;
use warpset_kmers::{
    Error, Index, IndexKind, Indexing, K, Pairing, Roll, Rule, Screening, Settings, Word, count_files,
};

use crate::damage;
use crate::files::{Files, bases, kmers, random};
use crate::reads::{fastq, reverse_complement};

fn fasta(sequences: &[&[u8]]) -> Vec<u8> {
    sequences.iter().flat_map(|letters| [b">x\n", *letters, b"\n"].concat()).collect()
}

/// Generates reads of a genome, of both strands, and some of another one, of any length.
fn reads_of(seed: u64, genomes: [&[u8]; 2], count: usize) -> Vec<Vec<u8>> {
    let mut next = random(seed);
    let read = |_| {
        let genome = genomes[usize::from(next(3) == 0)];
        let len = [0, 20, 31, 100, 150, 150, 400][next(7) as usize];
        let begin = next((genome.len() - len) as u64 + 1) as usize;
        let mut read = genome[begin..begin + len].to_vec();
        if next(2) == 0 {
            reverse_complement(&mut read);
        }
        if len > 0 && next(10) == 0 {
            read[len / 2] = b'N';
        }
        read
    };
    (0..count).map(read).collect()
}

fn kmers_of(k: u32, letters: &[u8]) -> Vec<u128> {
    let mut kmers = Vec::new();
    Roll::new(K::new(k).unwrap()).unwrap().each(letters, |kmer| kmers.push(kmer));
    kmers
}

/// Returns hits, k-mers, and whether they match, as written for each read.
fn counted(screening: Screening<'_>, files: &Files, reads: &[PathBuf]) -> Vec<(u64, u64, bool)> {
    screening.counts(files.path("counts")).run(reads).unwrap();
    let lines = fs::read_to_string(files.path("counts")).unwrap();
    let fields = lines.lines().map(|line| line.split('\t').skip(1).map(|field| field.parse().unwrap()).collect());
    fields.map(|fields: Vec<u64>| (fields[0], fields[1], fields[2] == 1)).collect()
}

/// Checks that all k-mers of a genome are found, hardly any others, and that reads are decided as by a plain set; by an
/// index after building, loading and mapping.
#[test]
fn reads_are_decided_as_by_a_set() {
    let files = Files::new();
    for (k, seed) in [(31, 1), (21, 2), (15, 3), (33, 4), (63, 5)] {
        let (genome, other) = (bases(seed, 60_000), bases(seed + 10, 60_000));
        let reads = reads_of(seed + 20, [&genome, &other], 3000);
        // Two records, whose k-mers do not continue from one to the other.
        let file = files.write("genome.fa", fasta(&[&genome[..20_000], &genome[20_000..]]));
        let reads_file = files.write("reads.fq", fastq(&reads));
        let set: HashSet<u128> =
            [&genome[..20_000], &genome[20_000..]].map(|part| kmers_of(k, part)).concat().into_iter().collect();
        let index = Indexing::new(k, 15).unwrap().kind(IndexKind::Sequences).threads(2).run(&[file]).unwrap();
        assert_eq!((index.len(), index.w(), index.k().get()), (set.len() as u64, 1, k));
        index.save(files.path("index")).unwrap();
        let loaded = Index::load(files.path("index")).unwrap();
        // SAFETY: nothing changes the file while it is mapped.
        let mapped = unsafe { Index::map(files.path("index")).unwrap() };
        mapped.save(files.path("again")).unwrap();
        assert!(fs::read(files.path("again")).unwrap() == fs::read(files.path("index")).unwrap());
        let rule = Rule::new(3, 0.3).unwrap();
        let (mut foreign, mut found) = (0, 0);
        for index in [&index, &loaded, &mapped] {
            assert_eq!((index.kind(), index.len()), (IndexKind::Sequences, set.len() as u64));
            let screening = Screening::by_index(index).rule(rule).threads(2);
            let counts = counted(screening.clone(), &files, std::slice::from_ref(&reads_file));
            assert_eq!(counts.len(), reads.len());
            for (read, (hits, total, matches)) in reads.iter().zip(counts) {
                let kmers = kmers_of(k, read);
                let there = kmers.iter().filter(|kmer| set.contains(kmer)).count() as u64;
                assert_eq!(total, kmers.len() as u64);
                // Never fewer hits than those of the set.
                assert!(hits >= there && hits <= total);
                foreign += total - there;
                found += hits - there;
                assert_eq!(matches, rule.matches(hits, total));
                if there == total {
                    assert_eq!(matches, rule.matches(there, total));
                }
            }
            // Pairs and prefixes are sums of windows too.
            let pairs = counted(
                screening.prefix(90).pairing(Pairing::Interleaved).any_mates(true),
                &files,
                std::slice::from_ref(&reads_file),
            );
            let wanted = reads
                .chunks_exact(2)
                .map(|pair| pair.iter().map(|read| kmers_of(k, &read[..read.len().min(90)]).len() as u64).sum::<u64>());
            assert!(pairs.iter().map(|&(_, total, _)| total).eq(wanted));
        }
        // Theory, and the windows beside equal stretches.
        assert!(found as f64 <= 1e-4 * foreign as f64 + 10.0, "{k}: {found} of {foreign}");
    }
}

/// Checks lookups of single k-mers, given as by minimizers.
#[test]
fn single_kmers_are_found() {
    let files = Files::new();
    let genome = bases(5, 3000);
    let file = files.write("genome.fa", fasta(&[&genome]));
    fn check<W: Word>(index: &Index, genome: &[u8]) {
        let minimizers = index.minimizers::<W>().unwrap();
        let kmers: Vec<W> = minimizers.find(genome).into_iter().map(|found| found.kmer).collect();
        assert_eq!(kmers.len(), 3001 - index.k().get() as usize);
        assert!(index.contains_bulk(&kmers).into_iter().all(|found| found));
        let others: Vec<W> = minimizers.find(&bases(6, 3000)).into_iter().map(|found| found.kmer).collect();
        assert!(index.contains_bulk(&others).into_iter().filter(|&found| found).count() < 3);
    }
    let of = |k| Indexing::new(k, 1).unwrap().kind(IndexKind::Sequences).run(std::slice::from_ref(&file)).unwrap();
    check::<u64>(&of(21), &genome);
    check::<u128>(&of(35), &genome);
    check::<u128>(&of(63), &genome);
    assert!(matches!(of(63).minimizers::<u64>(), Err(Error::InvalidK { k: 63, most: 32 })));
}

/// Checks that k-mers of other sequences, or of a table, are left out, except for a few at their edges.
#[test]
fn kmers_are_left_out() {
    let files = Files::new();
    let (genome, shared) = (bases(7, 20_000), bases(8, 5000));
    let both = [&genome[..10_000], &shared, &genome[10_000..]].concat();
    let [both_file, shared_file] =
        [("both.fa", &both), ("shared.fa", &shared)].map(|(name, letters)| files.write(name, fasta(&[letters])));
    count_files(std::slice::from_ref(&shared_file), &Settings::new(31).unwrap())
        .unwrap()
        .save(files.path("table"))
        .unwrap();
    let indexing = Indexing::new(31, 15).unwrap().kind(IndexKind::Sequences);
    let reads = files.write("reads.fq", fastq(&[shared.clone(), genome[..10_000].to_vec(), genome[10_000..].to_vec()]));
    for out in [&shared_file, &files.path("table")] {
        let index = indexing.clone().without([out.clone()]).run(std::slice::from_ref(&both_file)).unwrap();
        assert_eq!(index.len(), 25_000 - 30 - 4970);
        let counts = counted(Screening::by_index(&index), &files, std::slice::from_ref(&reads));
        assert!(counts[0].0 <= 8 + 2 && counts[1].0 == 9970 && counts[2].0 == 9970, "{counts:?}");
    }
    let none = indexing.clone().without([both_file.clone()]).run(&[shared_file.clone()]);
    assert!(matches!(none, Err(Error::AllLeftOut { what: "k-mers" })));
    Indexing::new(31, 15).unwrap().run(&[shared_file.clone()]).unwrap().save(files.path("exact")).unwrap();
    for files_of in [[files.path("exact")], [files.path("table")]] {
        assert!(matches!(indexing.run(&files_of), Err(Error::NotKmers { .. })));
    }
    let minimizers = indexing.clone().without([files.path("exact")]).run(&[both_file.clone()]);
    assert!(matches!(minimizers, Err(Error::NotKmers { .. })));
    let other_k = Indexing::new(21, 15).unwrap().kind(IndexKind::Sequences).without([files.path("table")]);
    assert!(matches!(other_k.run(&[both_file.clone()]), Err(Error::DifferentK { left: 31, right: 21 })));
    // Impossible settings: k-mers too short, no bits, minimizers of a filter.
    let short = Indexing::new(7, 15).unwrap().kind(IndexKind::Sequences).run(&[both_file.clone()]);
    assert!(matches!(short, Err(Error::Sequence(_))), "{short:?}");
    assert!(matches!(indexing.clone().bits_per_kmer(0.0).run(&[both_file.clone()]), Err(Error::Sequence(_))));
    let index = indexing.bits_per_kmer(24.0).run(&[both_file]).unwrap();
    assert!(index.memory_bytes().abs_diff(3 * 24_970) < 64);
    assert!(matches!(index.save_for_deacon(files.path("x")), Err(Error::NotForDeacon)) && !files.path("x").exists());
    index.save(files.path("filter")).unwrap();
    let taken_apart = Indexing::new(31, 1).unwrap().run(&[files.path("filter")]);
    assert!(matches!(taken_apart, Err(Error::OnlyFilter { .. })), "{taken_apart:?}");
}

/// Checks that files that are damaged anywhere give errors.
#[test]
fn damaged_files_are_errors() {
    let files = Files::new();
    let file = files.write("genome.fa", fasta(&[&bases(9, 3000)]));
    let index = Indexing::new(31, 15).unwrap().kind(IndexKind::Sequences).run(&[file]).unwrap();
    let path = files.path("damaged");
    index.save(&path).unwrap();
    let bytes = fs::read(&path).unwrap();
    damage::is_refused_when_damaged(&path);
    // The header of one index, the filter of another.
    let file = files.write("genome.fa", fasta(&[&bases(9, 3000)]));
    Indexing::new(21, 15).unwrap().kind(IndexKind::Sequences).run(&[file]).unwrap().save(&path).unwrap();
    let other = fs::read(&path).unwrap();
    damage::refused(&path, &[&bytes[..128], &other[128..]].concat());
    // SAFETY: nothing changes the file while it is mapped.
    assert!(unsafe { Index::map(&path) }.is_err());
}

/// Checks that devices decide as the CPU does.
#[test]
fn devices_decide_alike() {
    let files = Files::new();
    let (genome, other) = (bases(11, 9000), bases(12, 9000));
    let reads = files.write("reads.fq", fastq(&reads_of(13, [&genome, &other], 200)));
    let file = files.write("genome.fa", fasta(&[&genome]));
    let index = Indexing::new(31, 15).unwrap().kind(IndexKind::Sequences).run(&[file]).unwrap();
    index.save(files.path("index")).unwrap();
    // SAFETY: nothing changes the file while it is mapped.
    let mapped = unsafe { Index::map(files.path("index")).unwrap() };
    for device in devices(14) {
        for index in [&index, &mapped] {
            let screening =
                Screening::by_index(index).pairing(Pairing::Interleaved).any_mates(true).prefix(120).threads(2);
            let wanted = counted(
                screening.clone().backend(warpset_kmers::BackendChoice::Cpu),
                &files,
                std::slice::from_ref(&reads),
            );
            assert!(wanted.iter().any(|read| read.2) && wanted.iter().any(|read| !read.2));
            assert!(counted(screening.on(&device), &files, std::slice::from_ref(&reads)) == wanted);
        }
    }
}

#[test]
fn the_program_takes_them() {
    let files = Files::new();
    let name = |name: &str| files.path(name).to_str().unwrap().to_owned();
    let (genome, other) = (bases(15, 9000), bases(16, 9000));
    files.write("genome.fa", fasta(&[&genome]));
    files.write("reads.fq", fastq(&[genome[100..300].to_vec(), other[..200].to_vec(), vec![b'A'; 20]]));
    let done = |args: &[&str]| -> String {
        let output = kmers(args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{args:?}: {said}");
        said
    };
    done(&["index", &name("genome.fa"), "-o", &name("index"), "--kind", "sequences", "--bits-per-kmer", "12"]);
    let said = done(&["info", &name("index")]);
    assert!(said.contains("about 8970 k-mers, k = 31, sequences, 13472 bytes"), "{said}");
    for map in [&[][..], &["--map"]] {
        let said =
            done(&[&["screen", &name("index"), &name("reads.fq"), "--summary", &name("s.json")][..], map].concat());
        assert_eq!(said, "1 reads match, 2 do not\n");
    }
    let summary: serde_json::Value = serde_json::from_slice(&fs::read(name("s.json")).unwrap()).unwrap();
    assert_eq!((&summary["kind"], &summary["w"]), (&"sequences".into(), &1.into()));
    let output = kmers(&["index", &name("genome.fa"), "-o", &name("x"), "--kind", "sequences", "--for-deacon"]);
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("Deacon reads minimizers"));
}
