//! Screening by minimizers, compared with a plain model and with the decisions of Deacon, in every form of input and
//! output, and with unsound input.

use std::collections::HashSet;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use warpset_kmers::{Error, Index, IndexKind, Indexing, Pairing, Rule, Screening};
use warpset_sequence::{Minimizers, Scheme};

use crate::damage;
use crate::files::{Files, kmers, place, random};

type Read1 = (String, Vec<u8>);
type Form = fn(&[Read1]) -> Vec<u8>;

fn deacon(name: &str) -> PathBuf {
    Path::new(&place("CARGO_MANIFEST_DIR", env!("CARGO_MANIFEST_DIR"))).join("tests/data/deacon").join(name)
}

/// Generates a genome, and reads of it and of other sequences, with errors, N, repeats, and short ones.
fn genome_and_reads(seed: u64, count: usize) -> (Vec<u8>, Vec<Read1>) {
    let mut next = random(seed);
    let mut bases = |len: u64| -> Vec<u8> { (0..len).map(|_| b"ACGT"[next(4) as usize]).collect() };
    let (genome, other) = (bases(6000), bases(6000));
    let mut next = random(seed + 1);
    let reads = (0..count).map(|i| {
        let source = if next(3) == 0 { &other } else { &genome };
        let len = [0, 10, 40, 45, 46, 100, 150, 150, 700][next(9) as usize];
        let begin = next((source.len() - len) as u64 + 1) as usize;
        let mut read = source[begin..begin + len].to_vec();
        let errors = [0, 0, 1, 5, 30][next(5) as usize];
        for letter in &mut read {
            if next(100) < errors {
                *letter = b"ACGTNacgtR"[next(10) as usize];
            }
        }
        if next(9) == 0 {
            read = read.repeat(3);
        }
        (format!("read{i}"), read)
    });
    let reads = reads.collect();
    (genome, reads)
}

fn fastq(reads: &[Read1], end: &str) -> Vec<u8> {
    let mut text = Vec::new();
    for (name, letters) in reads {
        text.extend_from_slice(format!("@{name} x{end}").as_bytes());
        text.extend_from_slice(letters);
        text.extend_from_slice(format!("{end}+{end}{}{end}", "@".repeat(letters.len())).as_bytes());
    }
    text
}

fn fasta(reads: &[Read1], end: &str) -> Vec<u8> {
    let mut text = Vec::new();
    for (name, letters) in reads {
        text.extend_from_slice(format!(">{name} x{end}").as_bytes());
        for line in letters.chunks(60) {
            text.extend_from_slice(line);
            text.extend_from_slice(end.as_bytes());
        }
    }
    text
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text).unwrap();
    gzip.finish().unwrap()
}

fn gunzip(path: &Path) -> Vec<u8> {
    let mut text = Vec::new();
    flate2::read::MultiGzDecoder::new(fs::File::open(path).unwrap()).read_to_end(&mut text).unwrap();
    text
}

/// Returns the search for minimizers with the hash of Deacon.
fn minimizers(k: u32, w: u32) -> Minimizers<u128> {
    Minimizers::with_scheme(Scheme::new(k, w).unwrap().rotated_by(1)).unwrap()
}

/// Whether the index has each k-mer.
fn contains(index: &Index, kmers: &[u128]) -> Vec<bool> {
    match index.k().is_long() {
        true => index.contains_bulk(kmers),
        false => index.contains_bulk(&kmers.iter().map(|&kmer| kmer as u64).collect::<Vec<u64>>()),
    }
}

/// Returns hits, minimizers, and whether a read matches by the rule.
fn model(index: &Index, letters: &[&[u8]], rule: Rule, prefix: usize) -> (u64, u64, bool) {
    let minimizers = minimizers(index.k().get(), index.w());
    let of = |letters: &&[u8]| minimizers.find(&letters[..letters.len().min(prefix)]);
    let kmers: HashSet<u128> = letters.iter().flat_map(of).map(|found| found.kmer).collect();
    let kmers: Vec<u128> = kmers.into_iter().collect();
    let hits = contains(index, &kmers).into_iter().filter(|&found| found).count() as u64;
    let total = kmers.len() as u64;
    let matches = total > 0 && hits >= rule.hits() && hits as f64 / total as f64 >= rule.share();
    (hits, total, matches)
}

/// Checks that every kind of index, read and mapped, saved for us and for Deacon, has the minimizers of its sequences;
/// exact ones no others.
#[test]
fn indexes_come_back_from_their_files() {
    let files = Files::new();
    let (genome, reads) = genome_and_reads(1, 50);
    let sequences = [("genome".to_owned(), genome.clone())];
    let fasta = files.write("genome.fa", fasta(&sequences, "\n"));
    for (k, w) in [(31, 15), (15, 5), (1, 1), (21, 63), (33, 1), (41, 15), (61, 15), (63, 63)] {
        let minimizers = minimizers(k, w);
        let all: HashSet<u128> = minimizers.find(&genome).iter().map(|found| found.kmer).collect();
        let others = reads.iter().flat_map(|(_, letters)| minimizers.find(letters)).map(|found| found.kmer);
        let asked: Vec<u128> = all.iter().copied().chain(others).collect();
        let kinds = [IndexKind::Exact, IndexKind::Fuse16, IndexKind::Fuse32].map(|kind| [(kind, true), (kind, false)]);
        for (kind, for_deacon) in kinds.into_iter().flatten() {
            let indexing = Indexing::new(k, w).unwrap().kind(kind).for_deacon(for_deacon).threads(2);
            let index = indexing.run(&[fasta.clone()]);
            let is_refused = k > 61 || k + w > 96;
            if for_deacon && is_refused {
                assert!(matches!(index, Err(Error::WindowForDeacon { .. })));
                continue;
            }
            let index = index.unwrap();
            index.save(files.path("index")).unwrap();
            let saved = index.save_for_deacon(files.path("deacon"));
            let is_long_filter = k > 32 && kind != IndexKind::Exact;
            if is_refused || is_long_filter || !for_deacon && kind != IndexKind::Exact {
                match (is_refused, is_long_filter) {
                    (true, _) => assert!(matches!(saved, Err(Error::WindowForDeacon { .. }))),
                    (_, true) => assert!(matches!(saved, Err(Error::LongFilterForDeacon { .. }))),
                    _ => assert!(matches!(saved, Err(Error::Write { .. }))),
                }
                // SAFETY: nothing changes the file while it is mapped.
                let mapped = unsafe { Index::map(files.path("index")).unwrap() };
                for found in [index, mapped, Index::load(files.path("index")).unwrap()] {
                    assert!(found.len() == all.len() as u64 && found.kind() == kind);
                    let answers = contains(&found, &asked);
                    assert!(asked.iter().zip(answers).all(|(kmer, found)| found || !all.contains(kmer)));
                }
                continue;
            }
            saved.unwrap();
            // SAFETY: nothing changes the file while it is mapped.
            let mapped = unsafe { Index::map(files.path("index")).unwrap() };
            mapped.save(files.path("again")).unwrap();
            assert!(fs::read(files.path("again")).unwrap() == fs::read(files.path("index")).unwrap());
            mapped.save_for_deacon(files.path("deacon2")).unwrap();
            assert!(fs::read(files.path("deacon2")).unwrap() == fs::read(files.path("deacon")).unwrap());
            let loaded = Index::load(files.path("index")).unwrap();
            let of_deacon = Index::load(files.path("deacon")).unwrap();
            of_deacon.save(files.path("index")).unwrap();
            let again = Index::load(files.path("index")).unwrap();
            for found in [&index, &mapped, &loaded, &of_deacon, &again] {
                assert_eq!((found.k().get(), found.w(), found.kind()), (k, w, kind));
                assert_eq!(found.len(), all.len() as u64);
                let answers = contains(found, &asked);
                assert!(answers == contains(&index, &asked), "{found:?}");
                let is_right = |(kmer, &found): (&u128, &bool)| match kind {
                    IndexKind::Exact => found == all.contains(kmer),
                    _ => found || !all.contains(kmer),
                };
                assert!(asked.iter().zip(&answers).all(is_right), "{found:?}");
            }
        }
    }
}

/// Checks the union of indexes, and minimizers that are left out.
#[test]
fn indexes_are_united_and_taken_apart() {
    united_and_taken_apart(21);
    united_and_taken_apart(41);
    united_and_taken_apart(61);
}

fn united_and_taken_apart(k: u32) {
    let files = Files::new();
    let ((first, _), (second, _)) = (genome_and_reads(2, 0), genome_and_reads(3, 0));
    let of = |name: &str, letters: &[u8]| files.write(name, fasta(&[(name.to_owned(), letters.to_vec())], "\n"));
    let (a, b) = (of("a.fa", &first), of("b.fa", &[&first[1000..2000], &second].concat()));
    let both = of("both.fa", &[&first[..], b"N", &first[1000..2000], &second].concat());
    let indexing = Indexing::new(k, 11).unwrap();
    let [index_a, index_b, index_both] = [&a, &b, &both].map(|file| indexing.run(&[file.clone()]).unwrap());
    index_a.save(files.path("a.index")).unwrap();
    index_b.save_for_deacon(files.path("b.idx")).unwrap();
    let saved = |index: &Index| {
        index.save(files.path("saved")).unwrap();
        fs::read(files.path("saved")).unwrap()
    };
    let united = [files.path("a.index"), files.path("b.idx")];
    for files in [&united[..], &[a.clone(), b.clone()], &[united[0].clone(), b.clone()]] {
        assert!(saved(&indexing.run(files).unwrap()) == saved(&index_both));
    }
    let without = indexing.clone().without([files.path("b.idx")]).run(&[both.clone()]).unwrap();
    let kmers: Vec<u128> = minimizers(k, 11).find(&first).iter().map(|found| found.kmer).collect();
    let (in_both, in_b) = (contains(&without, &kmers), contains(&index_b, &kmers));
    assert!(in_both.iter().zip(&in_b).all(|(left, out)| left != out) && in_b.contains(&true));
    let none = indexing.clone().without([a.clone()]).run(&[a.clone()]);
    assert!(matches!(none, Err(Error::AllLeftOut { what: "minimizers" })));
    let other = Indexing::new(k, 5).unwrap().run(&united);
    assert!(matches!(other, Err(Error::DifferentWindow { found_w: 11, w: 5, .. })), "{other:?}");
    indexing.clone().kind(IndexKind::Fuse16).run(&[a]).unwrap().save(files.path("filter")).unwrap();
    assert!(matches!(indexing.run(&[files.path("filter")]), Err(Error::OnlyFilter { .. })));
}

/// Compares with the counts and decisions of Deacon 0.19.1 for each read and pair, by its own indexes, and by ours in
/// its format above 32 bases.
#[test]
fn decisions_are_those_of_deacon() {
    let files = Files::new();
    let decisions = fs::read_to_string(deacon("decisions.tsv")).unwrap();
    for line in decisions.lines() {
        let [index, hits, share, prefix, units, wanted] = line.split('\t').collect::<Vec<_>>()[..] else { panic!() };
        let index = Index::load(deacon(index)).unwrap();
        let rule = Rule::new(hits.parse().unwrap(), share.parse().unwrap()).unwrap();
        let pairing = if units == "pairs" { Pairing::Interleaved } else { Pairing::Single };
        let screening =
            Screening::by_index(&index).rule(rule).prefix(prefix.parse().unwrap()).pairing(pairing).any_mates(true);
        let counts = files.path("counts");
        let counted = screening.clone().threads(2).counts(&counts).run(&[deacon("reads.fq")]).unwrap();
        let found: Vec<String> = fs::read_to_string(&counts)
            .unwrap()
            .lines()
            .map(|line| {
                let [_, hits, total, matches] = line.split('\t').collect::<Vec<_>>()[..] else { panic!() };
                format!("{hits}/{total}{}", if matches == "1" { '+' } else { '-' })
            })
            .collect();
        assert_eq!(found.join(" "), wanted, "{line}");
        // Lookups end early, decisions stay.
        assert_eq!(screening.run(&[deacon("reads.fq")]).unwrap(), counted);
    }
    // The index that Deacon made equals ours.
    let ours = Indexing::new(31, 15).unwrap().run(&[deacon("genome.fa")]).unwrap();
    let theirs = Index::load(deacon("k31w15.idx")).unwrap();
    let saved = [ours, theirs].map(|index| {
        index.save_for_deacon(files.path("saved")).unwrap();
        fs::read(files.path("saved")).unwrap()
    });
    assert!(saved[0] == saved[1]);
}

/// Checks that reads come out unchanged and in order, for all rules, forms of input and output, and numbers of threads.
#[test]
fn reads_are_split_by_the_rule() {
    let files = Files::new();
    let (genome, reads) = genome_and_reads(4, 3000);
    let index = files.write("genome.fa", fasta(&[("genome".to_owned(), genome)], "\n"));
    let indexes = [(31, 15), (41, 15)].map(|(k, w)| Indexing::new(k, w).unwrap().run(&[index.clone()]).unwrap());
    indexes.iter().for_each(|index| split_by_the_rule(&files, index, &reads));
}

fn split_by_the_rule(files: &Files, index: &Index, reads: &[Read1]) {
    let split = |rule: Rule, prefix: usize| -> [Vec<Read1>; 2] {
        let (yes, no) = reads.iter().cloned().partition(|(_, letters)| model(index, &[letters], rule, prefix).2);
        [yes, no]
    };
    let rule = |hits, share| Rule::new(hits, share).unwrap();
    for (i, (rule, prefix)) in
        [(rule(2, 0.01), 0), (rule(1, 0.0), 0), (rule(3, 0.4), 0), (rule(1, 1.0), 0), (rule(2, 0.01), 60)]
            .into_iter()
            .enumerate()
    {
        let whole = if prefix == 0 { usize::MAX } else { prefix };
        let wanted = split(rule, whole);
        assert!(wanted.iter().all(|reads| reads.len() > 200));
        let plain = [fastq(reads, "\n"), fasta(reads, "\n"), fastq(reads, "\r\n"), fasta(reads, "\r\n")];
        let forms: [Form; 4] = [
            |reads| fastq(reads, "\n"),
            |reads| fasta(reads, "\n"),
            |reads| fastq(reads, "\r\n"),
            |reads| fasta(reads, "\r\n"),
        ];
        let (text, form) = (&plain[i % 4], forms[i % 4]);
        files.write("reads", text);
        files.write("reads.gz", gzip(text));
        // Our packed output is read again, by several threads.
        Screening::by_index(index)
            .rule(rule)
            .min_hits(0)
            .matched(files.path("all.gz"))
            .run(&[files.path("reads")])
            .unwrap();
        for (input, output, threads) in [
            ("reads", "plain", 3),
            ("reads", "packed.gz", 1),
            ("reads.gz", "packed.zst", 2),
            ("all.gz", "packed.gz", 3),
            ("all.gz", "plain", 1),
        ] {
            let [yes, no] = ["yes", "no"].map(|name| files.path(&format!("{name}.{output}")));
            let screening = Screening::by_index(index).rule(rule).prefix(prefix).threads(threads);
            let screened = screening.clone().matched(&yes).unmatched(&no).run(&[files.path(input)]).unwrap();
            assert_eq!((screened.matched, screened.unmatched), (wanted[0].len() as u64, wanted[1].len() as u64));
            for (path, wanted) in [yes, no].iter().zip(&wanted) {
                let found = match output {
                    "packed.gz" => gunzip(path),
                    "packed.zst" => {
                        let again = files.path("again");
                        screening.clone().min_hits(0).matched(&again).run(&[path.clone()]).unwrap();
                        fs::read(again).unwrap()
                    }
                    _ => fs::read(path).unwrap(),
                };
                assert!(found == form(wanted), "{i} {input} {output} {threads}");
            }
        }
    }
}

/// Checks that mates match together, from two files or from one, and are written together or apart.
#[test]
fn mates_match_together() {
    let files = Files::new();
    let (genome, reads) = genome_and_reads(5, 2000);
    let index = files.write("genome.fa", fasta(&[("genome".to_owned(), genome)], "\n"));
    let index = Indexing::new(31, 15).unwrap().run(&[index]).unwrap();
    let rule = Rule::new(2, 0.3).unwrap();
    let reads: Vec<Read1> = reads
        .into_iter()
        .enumerate()
        .map(|(i, (_, letters))| (format!("pair{}/{}", i / 2, 1 + i % 2), letters))
        .collect();
    let pairs: Vec<[Read1; 2]> = reads.chunks(2).map(|pair| [pair[0].clone(), pair[1].clone()]).collect();
    let of = |pairs: &[[Read1; 2]], mate: usize| pairs.iter().map(|pair| pair[mate].clone()).collect::<Vec<Read1>>();
    let is_match = |pair: &&[Read1; 2]| model(&index, &[&pair[0].1, &pair[1].1], rule, usize::MAX).2;
    let yes: Vec<[Read1; 2]> = pairs.iter().filter(is_match).cloned().collect();
    let first = files.write("first.fq", fastq(&of(&pairs, 0), "\n"));
    // With lines of another length, and without the last line end.
    let second = files.write("second.fa.gz", gzip(fasta(&of(&pairs, 1), "\n").trim_ascii_end()));
    let both = files.write("both.fq", fastq(&reads, "\n"));
    let screening = Screening::by_index(&index).rule(rule);
    for threads in [1, 3] {
        let screening = screening.clone().threads(threads);
        let [one, two, together] = ["one", "two", "together"].map(|name| files.path(name));
        let in_files = screening.clone().pairing(Pairing::Files).matched(&one).matched_mates(&two);
        let screened = in_files.run(&[first.clone(), second.clone(), first.clone(), second.clone()]).unwrap();
        assert_eq!(screened.matched, 4 * yes.len() as u64);
        let twice = |mate| [of(&yes, mate), of(&yes, mate)].concat();
        assert!(fs::read(&one).unwrap() == fastq(&twice(0), "\n"));
        assert!(fs::read(&two).unwrap().trim_ascii_end() == fasta(&twice(1), "\n").trim_ascii_end());
        let interleaved = screening.pairing(Pairing::Interleaved).matched(&together);
        assert_eq!(interleaved.run(&[both.clone()]).unwrap().matched, 2 * yes.len() as u64);
        assert!(fs::read(&together).unwrap() == fastq(&yes.concat(), "\n"));
    }
    let odd = files.write("odd.fq", fastq(&reads[1..], "\n"));
    let said = |screening: Screening<'_>, files: &[PathBuf]| screening.run(files).unwrap_err();
    let paired = screening.clone().pairing(Pairing::Files).any_mates(true);
    for files in [[&both, &first], [&first, &both]] {
        let error = said(paired.clone(), &files.map(Clone::clone));
        assert!(matches!(&error, Error::Unpaired { path, reads: 1000, .. } if *path == first), "{error}");
    }
    assert!(matches!(said(paired, &[first.clone()]), Error::OddFiles { files: 1 }));
    let interleaved = screening.clone().pairing(Pairing::Interleaved);
    assert!(matches!(said(interleaved.any_mates(true), &[odd]), Error::OddReads { reads: 1999, .. }));
    assert!(matches!(said(screening.matched_mates(files.path("x")), &[first]), Error::NoMates { .. }));
}

/// Checks that every fault of the input gives an error that names it, and no output or part of one; existing files of
/// that name stay.
#[test]
fn bad_input_is_an_error_and_leaves_nothing() {
    let files = Files::new();
    let (genome, reads) = genome_and_reads(6, 4000);
    let genome = files.write("genome.fa", fasta(&[("genome".to_owned(), genome)], "\n"));
    let index = Indexing::new(31, 15).unwrap().run(&[genome.clone()]).unwrap();
    let text = fastq(&reads, "\n");
    let good = files.write("good.fq", &text);
    let packed = gzip(&text);
    let with = |from: &str, to: &str| String::from_utf8(text.clone()).unwrap().replacen(from, to, 1);
    let quality = with("@read3000 x\n", "@read3000 x\nA");
    let last = text.len() - 30;
    let zstd = files.path("zstd.zst");
    Screening::by_index(&index).min_hits(0).matched(&zstd).run(&[good.clone()]).unwrap();
    let zstd = fs::read(zstd).unwrap();
    let blocked = files.path("blocked.gz");
    Screening::by_index(&index).min_hits(0).matched(&blocked).run(&[good.clone()]).unwrap();
    let blocked = fs::read(blocked).unwrap();
    fs::create_dir(files.path("folder")).unwrap();
    let cases: Vec<(PathBuf, &str)> = vec![
        (files.write("cut.gz", &packed[..packed.len() / 2]), "whole records"),
        (files.write("tail.gz", &packed[..packed.len() - 4]), "whole records"),
        (files.write("cut.bgz", &blocked[..blocked.len() / 2]), "whole records"),
        (files.write("cut.zst", &zstd[..zstd.len() / 2]), "whole records"),
        (files.write("quality.fq", &quality), "line 12001, \"read3000\", has"),
        (files.write("quality.fq.gz", gzip(quality.as_bytes())), "line 12001, \"read3000\", has"),
        (files.write("separator.fq", with("\n+\n", "\n-\n")), "line 3 of record \"read0\""),
        (files.write("mark.fq", with("@read2999 ", "#read2999 ")), ""),
        (files.write("cut.fq", &text[..last]), "it ends at line"),
        (files.write("text", b"hello\n"), "it begins with 'h'"),
        (files.write("reads.xz", b"\xfd7zXZ\0\0\0"), "xz"),
        (files.path("folder"), "directory"),
        (files.path("missing"), ""),
    ];
    files.write("yes.fq", b"old");
    let before = files.names();
    for (path, said) in cases {
        for threads in [1, 3] {
            for input in [vec![path.clone()], vec![good.clone(), path.clone()]] {
                let screening = Screening::by_index(&index).threads(threads);
                let screening = screening.matched(files.path("yes.fq")).unmatched(files.path("no.gz"));
                let error = screening.run(&input).unwrap_err();
                let text = error.to_string();
                let is_named =
                    matches!(error, Error::Read { .. } | Error::NotSequence { .. } | Error::OtherKind { .. });
                assert!(is_named, "{error:?}");
                assert!(text.contains(path.to_str().unwrap()) && text.contains(said), "{path:?}: {text}");
                assert_eq!(files.names(), before, "{path:?}");
                assert_eq!(fs::read(files.path("yes.fq")).unwrap(), b"old");
            }
        }
        let indexed = Indexing::new(31, 15).unwrap().run(&[genome.clone(), path.clone()]).unwrap_err();
        assert!(indexed.to_string().contains(path.to_str().unwrap()), "{indexed}");
    }
    assert!(matches!(Screening::by_index(&index).run(&[]), Err(Error::NoInput)));
    let same = Screening::by_index(&index).matched(&good).run(&[good.clone()]);
    assert!(matches!(same, Err(Error::SameFile { .. })));
    let nowhere = Screening::by_index(&index).matched(files.path("nowhere/x")).run(&[good.clone()]);
    assert!(matches!(nowhere, Err(Error::Write { .. })));
    #[cfg(target_os = "linux")]
    {
        let full = Screening::by_index(&index).threads(2).unmatched("/dev/full").run(&[good]);
        assert!(matches!(full, Err(Error::Write { .. })), "{full:?}");
    }
}

/// Checks that files that are no index, or damaged anywhere, give errors without panics, and that no memory of the size
/// they claim is allocated.
#[test]
fn damaged_indexes_are_errors() {
    let files = Files::new();
    let (genome, _) = genome_and_reads(7, 0);
    let genome = files.write("genome.fa", fasta(&[("genome".to_owned(), genome)], "\n"));
    let path = files.path("damaged");
    let refused = |bytes: &[u8]| damage::refused(&path, bytes);
    for (k, kind) in [(31, IndexKind::Exact), (41, IndexKind::Exact), (31, IndexKind::Fuse16), (31, IndexKind::Fuse32)]
    {
        let index = Indexing::new(k, 15).unwrap().kind(kind).for_deacon(true).run(&[genome.clone()]).unwrap();
        index.save(&path).unwrap();
        damage::is_refused_when_damaged(&path);
        index.save_for_deacon(&path).unwrap();
        let bytes = fs::read(&path).unwrap();
        for len in [0, 1, 3, 10, 11, 14, 15, 30, bytes.len() / 2, bytes.len() - 1] {
            refused(&bytes[..len]);
        }
        for at in 0..43.min(bytes.len()) {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                fs::write(&path, &damaged).unwrap();
                let _ = Index::load(&path);
            }
        }
    }
    let exact = fs::read(deacon("k31w15.idx")).unwrap();
    let twice = [&exact[..11], &exact[11..19], &exact[11..exact.len() - 8]].concat();
    assert!(refused(&twice).to_string().contains("different minimizers"));
    let mut large = exact.clone();
    large[18] = 0xff;
    assert!(refused(&large).to_string().contains("no canonical 31-mer"));
    let mut old = exact.clone();
    old[0] = 2;
    assert!(refused(&old).to_string().contains("in version 2"));
    let long = [&[3, 65, 15][..], &0u64.to_le_bytes()].concat();
    fs::write(&path, long).unwrap();
    assert!(matches!(Index::load(&path), Err(Error::InvalidWindow { k: 65, w: 15 })));
    let long = [&[3, 41, 15][..], &1u64.to_le_bytes(), &[0xff; 11]].concat();
    assert!(refused(&long).to_string().contains("no canonical 41-mer"));
    let long = [&[3, 41, 15][..], &2u64.to_le_bytes(), &[0; 22]].concat();
    assert!(refused(&long).to_string().contains("different minimizers"));
    assert!(matches!(Index::load(&genome), Err(Error::OtherKind { .. })));
    assert!(matches!(Index::load(files.path("missing")), Err(Error::Read { .. })));
    assert!(Index::load(files.path("")).is_err());
    for (k, w) in [(0, 1), (2, 1), (31, 0), (31, 2), (65, 15), (31, 65)] {
        assert!(matches!(Indexing::new(k, w), Err(Error::InvalidWindow { .. })), "{k} {w}");
    }
}

/// Runs the program with every option.
#[test]
fn the_program_indexes_and_screens() {
    let files = Files::new();
    let name = |name: &str| files.path(name).to_str().unwrap().to_owned();
    let (genome, reads) = genome_and_reads(8, 500);
    files.write("genome.fa", fasta(&[("genome".to_owned(), genome)], "\n"));
    files.write("reads.fq", fastq(&reads, "\n"));
    let done = |args: &[&str]| -> (Vec<u8>, String) {
        let output = kmers(args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{args:?}: {said}");
        (output.stdout, said)
    };
    let (genome, reads_file) = (name("genome.fa"), name("reads.fq"));
    done(&["index", &genome, "-o", &name("index"), "-k", "21", "-w", "11", "-t", "2"]);
    done(&["index", &name("index"), "-o", &name("f.pidx"), "-k", "21", "-w", "11", "--kind", "fuse16", "--for-deacon"]);
    let (_, said) = done(&["info", &name("f.pidx")]);
    assert!(said.contains("k = 21, w = 11, fuse16"), "{said}");
    for index in ["index", "f.pidx"] {
        let map: &[&str] = if index == "index" { &["--map"] } else { &[] };
        let (found, said) = done(&[&["screen", &name(index), &reads_file, "--unmatched", "-"][..], map].concat());
        let index = Index::load(name(index)).unwrap();
        let rule = Rule::new(2, 0.01).unwrap();
        let is_match = |read: &&Read1| model(&index, &[&read.1], rule, usize::MAX).2;
        let (yes, no): (Vec<&Read1>, Vec<&Read1>) = reads.iter().partition(is_match);
        assert_eq!(said, format!("{} reads match, {} do not\n", yes.len(), no.len()));
        assert!(found == fastq(&no.into_iter().cloned().collect::<Vec<_>>(), "\n"));
    }
    let (summary, counts) = (name("summary.json"), name("counts.tsv"));
    let options = [
        "--interleaved",
        "--any-mates",
        "--min-hits",
        "1",
        "--min-share",
        "0.5",
        "--prefix",
        "90",
        "--compression",
        "9",
    ];
    let outputs =
        ["--summary", &summary, "--counts", &counts, "--matched", &name("y.gz"), "--matched-mates", &name("z.gz")];
    done(&[&["screen", &name("index"), &reads_file][..], &options, &outputs].concat());
    let summary: serde_json::Value = serde_json::from_slice(&fs::read(&summary).unwrap()).unwrap();
    let lines = fs::read_to_string(&counts).unwrap();
    let matched = lines.lines().filter(|line| line.ends_with("\t1")).count() as u64;
    assert_eq!(lines.lines().count(), 250);
    for (field, value) in [("k", 21), ("w", 11), ("min_hits", 1), ("prefix", 90), ("reads", 500)] {
        assert_eq!(summary[field], value, "{field}");
    }
    assert_eq!((&summary["reads_matched"], &summary["paired"]), (&(2 * matched).into(), &true.into()));
    // Tables of k-mers work with the same options.
    done(&["count", "-k", "21", "--backend", "cpu", "-o", &name("table"), &genome]);
    done(&["screen", &name("table"), &reads_file, "--min-share", "0.5", "--matched", &name("yes.fq")]);
    done(&["info", &name("table")]);
    for (args, says) in [
        (vec!["index", &genome, "-o", &name("x"), "-k", "30"], "odd k"),
        (vec!["screen", &genome, &reads_file], "genome.fa"),
        (vec!["screen", &name("index"), &reads_file, "--min-share", "2"], "from 0 to 1"),
        (vec!["screen", &name("index"), &reads_file, "--min-hits", "0"], "at least one hit"),
        (vec!["info", &reads_file], "reads.fq"),
    ] {
        let output = kmers(&args);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(says) && !error.contains("panicked"), "{error}");
    }
}
