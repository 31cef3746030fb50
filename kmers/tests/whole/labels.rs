//! Labels and the genomes of reads, compared with a map of all k-mers, from every file, and by the program.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use warpset_kmers::{
    BackendChoice, Error, K, Label, Labels, Pairing, Roll, Rule, Screening, Settings, label_files, letters,
};

use crate::damage;
use crate::files::{Files, bases, kmers, random};
use crate::reads::{fastq, reverse_complement};

/// Bits that make a false label unlikely in a whole test.
const SURE: u32 = 32;

fn kmers_of(k: u32, letters: &[u8]) -> Vec<u128> {
    let mut kmers = Vec::new();
    Roll::new(K::new(k).unwrap()).unwrap().each(letters, |kmer| kmers.push(kmer));
    kmers
}

fn settings(k: u32, threads: usize) -> Settings {
    Settings::new(k).unwrap().threads(threads)
}

/// Returns the label of each k-mer of genomes.
fn model(k: u32, genomes: &[Vec<u8>]) -> HashMap<u128, Label> {
    let mut model = HashMap::new();
    for (number, genome) in genomes.iter().enumerate() {
        for kmer in kmers_of(k, genome) {
            let label = model.entry(kmer).or_insert(Label::Genome(number));
            if *label != Label::Genome(number) {
                *label = Label::Several;
            }
        }
    }
    model
}

/// Writes each genome as a file: plain, with short lines, or as FASTQ.
fn written(files: &Files, genomes: &[Vec<u8>]) -> Vec<PathBuf> {
    let file = |(i, genome): (usize, &Vec<u8>)| match i % 3 {
        0 => files.write(&format!("{i}.fa"), [b">g\n", &genome[..], b"\n"].concat()),
        1 => {
            files.write(&format!("{i}.fa"), [b">g\n", &genome.chunks(61).collect::<Vec<_>>().join(&b'\n')[..]].concat())
        }
        _ => files.write(&format!("{i}.fq"), fastq(&[genome.clone()])),
    };
    genomes.iter().enumerate().map(file).collect()
}

/// Generates genomes that share stretches with the first one, some with N, and palindromes of all even lengths.
fn genomes(seed: u64, count: usize, len: usize) -> Vec<Vec<u8>> {
    let shared = bases(seed, len);
    let half = &shared[..len.min(40)];
    let mut other_half = half.to_vec();
    reverse_complement(&mut other_half);
    let genome = |i: u64| {
        let own = bases(seed + 1 + i, len);
        let mut genome =
            [&own[..], b"N", &shared[..len / (2 + i as usize % 4)], b"NACGTACGTN", half, &other_half].concat();
        genome[len / 3] = b'N';
        if i % 2 == 1 {
            reverse_complement(&mut genome);
        }
        genome
    };
    (0..count as u64).map(genome).collect()
}

fn check(labels: &Labels, model: &HashMap<u128, Label>) {
    let count = |label| model.values().filter(|&&other| other == label).count() as u64;
    assert_eq!(labels.len(), model.len() as u64);
    assert_eq!(labels.kmers(Label::Several), count(Label::Several));
    for genome in 0..labels.genomes().len() {
        assert_eq!(labels.kmers(Label::Genome(genome)), count(Label::Genome(genome)), "{genome}");
    }
    for (&kmer, &label) in model {
        assert_eq!(labels.get(letters(kmer, labels.k()).as_bytes()).unwrap(), Some(label));
    }
}

/// Checks every k-mer for even and odd k, on one thread and several, with and without a budget, after saving and
/// loading; and that the bytes depend on neither threads nor budget.
#[test]
fn kmers_have_the_label_of_the_map() {
    let files = Files::new();
    let all = [(1, 2, 40), (4, 1, 300), (15, 3, 3000), (16, 2, 2000), (21, 7, 3000), (31, 5, 9000), (32, 4, 5000)];
    for (k, count, len) in all.into_iter().chain((33..=63).map(|k| (k, 3, if k == 47 { 9000 } else { 300 }))) {
        let genomes = genomes(u64::from(k), count, len);
        let (model, paths) = (model(k, &genomes), written(&files, &genomes));
        let labels = label_files(&paths, &settings(k, 2), SURE).unwrap();
        check(&labels, &model);
        labels.save(files.path("labels")).unwrap();
        let loaded = Labels::load(files.path("labels")).unwrap();
        assert_eq!(loaded, labels);
        check(&loaded, &model);
        assert_eq!(loaded.genomes(), paths.iter().map(|path| path.to_str().unwrap()).collect::<Vec<_>>());
        assert_eq!(label_files(&paths, &settings(k, 1).memory(80 << 20), SURE).unwrap(), labels);
    }
}

/// Checks one genome, 255 genomes, and that more are refused.
#[test]
fn up_to_255_genomes_are_told_apart() {
    let files = Files::new();
    let genomes = genomes(3, 255, 200);
    let mut paths = written(&files, &genomes);
    check(&label_files(&paths, &settings(20, 2), SURE).unwrap(), &model(20, &genomes));
    check(&label_files(&paths[..1], &settings(20, 2), SURE).unwrap(), &model(20, &genomes[..1]));
    paths.push(paths[0].clone());
    let error = label_files(&paths, &settings(20, 2), SURE).unwrap_err();
    assert!(matches!(error, Error::TooManyGenomes { genomes: 256 }), "{error}");
}

/// Checks that the share of other k-mers with a label is that of the filter.
#[test]
fn other_kmers_are_rejected() {
    let files = Files::new();
    let paths = written(&files, &genomes(5, 3, 20_000));
    for (k, bits) in [(31, 4), (31, 8), (31, 12), (51, 8)] {
        let others = kmers_of(k, &bases(77, 200_000));
        let labels = label_files(&paths, &settings(k, 2), bits).unwrap();
        let keys: Vec<u64> = others.iter().map(|&kmer| labels.key(kmer)).collect();
        let found = labels.function().get_bulk(&keys).into_iter().flatten().count() as f64;
        let wanted = others.len() as f64 * labels.fpr();
        assert!(
            (found - wanted).abs() < 5.0 * wanted.sqrt() && labels.fpr() == (-f64::from(bits)).exp2(),
            "{found} {wanted}"
        );
    }
    assert!(matches!(label_files(&paths, &settings(31, 2), 33), Err(Error::Index(_))));
}

#[test]
fn inputs_without_kmers() {
    let files = Files::new();
    let empty = files.write("empty.fa", "");
    let short = files.write("short.fa", ">a\nACGTNNACG\n");
    let genome = files.write("genome.fa", [b">g\n", &bases(9, 100)[..]].concat());
    assert!(matches!(label_files(&[], &settings(5, 1), 8), Err(Error::NoInput)));
    assert!(matches!(label_files(&[empty.clone(), short.clone()], &settings(5, 1), 8), Err(Error::NoKmers { k: 5 })));
    let labels = label_files(&[empty, genome, short], &settings(20, 1), 8).unwrap();
    let kmers = [0, 1, 2].map(|genome| labels.kmers(Label::Genome(genome)));
    assert_eq!((kmers, labels.kmers(Label::Several)), ([0, 81, 0], 0));
    assert!(matches!(labels.get(b"ACGT"), Err(Error::NotKmer { .. })));
    let missing = label_files(&[files.path("none.fa")], &settings(5, 1), 8);
    assert!(matches!(missing, Err(Error::Read { .. })));
    let budget = label_files(&[files.path("genome.fa")], &settings(5, 1).memory(1 << 20), 8);
    assert!(matches!(budget, Err(Error::BudgetTooSmall { .. })));
}

/// Returns the line after the name that a unit should have, by the map.
fn line(labels: &Labels, model: &HashMap<u128, Label>, rule: Rule, kmers: &[u128]) -> String {
    let (mut votes, mut several) = (vec![0u64; labels.genomes().len()], 0);
    for kmer in kmers {
        match model.get(kmer) {
            Some(Label::Several) => several += 1,
            Some(&Label::Genome(genome)) => votes[genome] += 1,
            None => {}
        }
    }
    let most = votes.iter().copied().max().unwrap();
    let is_won =
        most > 0 && votes.iter().filter(|&&votes| votes == most).count() == 1 && rule.matches(most, kmers.len() as u64);
    let winner = votes.iter().position(|&votes| votes == most).filter(|_| is_won);
    let mut sorted: Vec<(u64, usize)> = votes.into_iter().zip(1..).filter(|&(votes, _)| votes > 0).collect();
    sorted.sort_by_key(|&(votes, number)| (u64::MAX - votes, number));
    let list: Vec<String> = sorted.iter().map(|(votes, number)| format!("{number}:{votes}")).collect();
    let list = if list.is_empty() { "-".to_owned() } else { list.join(",") };
    let name = winner.map_or("-", |winner| &labels.genomes()[winner]);
    format!("{name}\t{most}\t{several}\t{}\t{list}", kmers.len())
}

/// Checks the line of each read and each pair, with rules and prefixes, and the split of reads.
#[test]
fn reads_are_given_to_the_genome_of_the_map() {
    let files = Files::new();
    for (k, seed) in [(31, 1), (16, 2), (55, 3)] {
        let genomes = genomes(seed, 6, 4000);
        let model = model(k, &genomes);
        let labels = label_files(&written(&files, &genomes), &settings(k, 2), SURE).unwrap();
        let mut next = random(seed);
        let reads: Vec<Vec<u8>> = (0..2000)
            .map(|i| {
                let mut piece = |len: usize| {
                    let genome = &genomes[next(6) as usize];
                    let begin = next((genome.len() - len) as u64) as usize;
                    genome[begin..begin + len].to_vec()
                };
                match i % 5 {
                    0 => [piece(60), piece(60)].concat(), // of two genomes, mostly
                    1 => bases(i, 100),
                    2 => piece((i % 40) as usize),
                    _ => piece(120),
                }
            })
            .collect();
        let file = files.write("reads.fq", fastq(&reads));
        let path = files.path("lines");
        let rule = Rule::new(2, 0.01).unwrap();
        for (rule, prefix) in [(rule, 0), (Rule::new(1, 0.0).unwrap(), 0), (Rule::new(10, 0.4).unwrap(), 70)] {
            let screening = Screening::by_labels(&labels).rule(rule).prefix(prefix).threads(2).counts(&path);
            let end = |read: &[u8]| if prefix == 0 { read.len() } else { read.len().min(prefix) };
            let kmers: Vec<Vec<u128>> = reads.iter().map(|read| kmers_of(k, &read[..end(read)])).collect();
            let wanted: Vec<String> = kmers.iter().map(|kmers| line(&labels, &model, rule, kmers)).collect();
            let screened = screening.clone().matched(files.path("matched")).run(&[file.clone()]).unwrap();
            let text = fs::read_to_string(&path).unwrap();
            let found: Vec<&str> = text.lines().map(|line| line.split_once('\t').unwrap().1).collect();
            assert_eq!(found, wanted, "{k}");
            let won = wanted.iter().filter(|line| !line.starts_with('-')).count() as u64;
            assert_eq!((screened.matched, screened.unmatched), (won, 2000 - won));
            assert!(won > 100 && won < 1900, "{won}");
            let matched = fs::read_to_string(files.path("matched")).unwrap();
            assert_eq!(matched.lines().count() as u64, 4 * won);
            screening.pairing(Pairing::Interleaved).any_mates(true).run(&[file.clone()]).unwrap();
            let text = fs::read_to_string(&path).unwrap();
            let found: Vec<&str> = text.lines().map(|line| line.split_once('\t').unwrap().1).collect();
            let wanted: Vec<String> = kmers.chunks(2).map(|pair| line(&labels, &model, rule, &pair.concat())).collect();
            assert_eq!(found, wanted, "{k}");
        }
        let on_device = Screening::by_labels(&labels).backend(BackendChoice::Cuda).run(&[file]);
        assert!(matches!(on_device, Err(Error::TableOnDevice)));
    }
}

/// Checks that no damage is accepted and that other files are named.
#[test]
fn damaged_and_other_files_are_refused() {
    let files = Files::new();
    let genomes = genomes(6, 2, 200);
    let paths = written(&files, &genomes);
    for k in [11, 41] {
        label_files(&paths, &settings(k, 1), 8).unwrap().save(files.path("labels")).unwrap();
        for damaged in damage::damaged(&fs::read(files.path("labels")).unwrap()) {
            let error = Labels::load(files.write("damaged", damaged)).unwrap_err();
            assert!(matches!(error, Error::NotLabels { .. } | Error::OtherKind { .. }), "{error}");
        }
    }
    let bytes = fs::read(files.path("labels")).unwrap();
    let refused = |path: &PathBuf| Labels::load(path).unwrap_err().to_string();
    assert!(refused(&paths[0]).contains("is FASTA; labels are needed, which `kmers label` writes"));
    assert!(refused(&files.write("x", "hello")).contains("cannot be used as labels"));
    assert!(refused(&files.write("x", &bytes[..50])).contains("cannot be used as labels"));
    assert!(matches!(Labels::load(files.path("none")), Err(Error::Read { .. })));
    warpset_kmers::count_files(&paths, &settings(11, 1)).unwrap().save(files.path("table")).unwrap();
    assert!(refused(&files.path("table")).contains("is a table; labels are needed"));
}

#[test]
fn the_program_labels_and_tells() {
    let files = Files::new();
    let name = |name: &str| files.path(name).to_str().unwrap().to_owned();
    let genomes = [bases(1, 500), bases(2, 600)];
    let paths = written(&files, &genomes).iter().map(|path| path.to_str().unwrap().to_owned()).collect::<Vec<_>>();
    files.write(
        "reads.fq",
        fastq(&[genomes[0][..130].to_vec(), genomes[1][..131].to_vec(), bases(3, 100), b"AC".to_vec()]),
    );
    let run = |args: &[&str]| {
        let output = kmers(args);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.success(), text(output.stdout), text(output.stderr))
    };
    let (done, _, said) = run(&["label", &paths[0], &paths[1], "-o", &name("labels")]);
    assert!(done && said.contains("1040 31-mers of 2 genomes, 0 of several"), "{said}");
    let (done, lines, said) = run(&["which", &name("labels"), &name("reads.fq")]);
    assert_eq!((done, said.as_str()), (true, "2 reads match, 2 do not\n"));
    let mut fields: Vec<Vec<&str>> = lines.lines().map(|line| line.split('\t').skip(1).collect()).collect();
    fields[2][4] = "any false ones";
    assert_eq!(fields[0], [&paths[0], "100", "0", "100", "1:100"]);
    assert_eq!(fields[1], [&paths[1], "101", "0", "101", "2:101"]);
    assert_eq!((fields[2][0], fields[2][3]), ("-", "70"));
    assert_eq!(fields[3], ["-", "0", "0", "0", "-"]);
    let (_, counts, _) = run(&["-q", "screen", &name("labels"), &name("reads.fq"), "--counts", "-"]);
    assert_eq!(counts, lines);
    let (done, numbers, said) = run(&["info", &name("labels")]);
    assert!(done && said.contains("1040 31-mers of 2 genomes"), "{said}");
    assert_eq!(numbers, format!("1\t470\t{}\n2\t570\t{}\n", paths[0], paths[1]));
    let (done, _, said) = run(&["label", "-k", "47", &paths[0], &paths[1], "-o", &name("long")]);
    assert!(done && said.contains("1008 47-mers of 2 genomes, 0 of several"), "{said}");
    let (_, lines, _) = run(&["which", &name("long"), &name("reads.fq")]);
    assert_eq!(lines.lines().next().unwrap(), format!("0\t{}\t84\t0\t84\t1:84", paths[0]));
    // No file that is read is replaced, and no output is left after an error.
    let before = files.names();
    for (args, wanted) in [
        (vec!["which", &name("labels"), &name("reads.fq"), "-o", &name("reads.fq")], "would be read and written"),
        (vec!["which", &name("labels"), &name("reads.fq"), "-o", &name("labels")], "would be read and written"),
        (vec!["label", &paths[0], "-o", &paths[0]], "would be read and written"),
        (vec!["label", &paths[0], "-o", &name("x.gz")], "written unpacked"),
        (vec!["label", &paths[0], "-o", &name("x"), "-k", "64"], "choose 1 to 63 bases"),
        (vec!["label", &paths[0], "-o", &name("x"), "--filter-bits", "33"], "33 is not in 1..=32"),
        (vec!["which", &paths[0], &name("reads.fq")], "labels are needed"),
        (vec!["which", "-", &name("reads.fq")], "cannot be the standard input"),
        (vec!["screen", &name("labels"), &name("reads.fq"), "--map"], "tables and labels are read"),
        (vec!["screen", &name("labels"), &name("reads.fq"), "--backend", "cuda"], "looked up on the CPU"),
        (vec!["merge", &name("labels"), "-o", &name("x")], "is labels; a table is needed"),
    ] {
        let (done, _, said) = run(&args);
        assert!(!done && said.contains(wanted), "{args:?}: {said}");
        assert_eq!(files.names(), before);
    }
    let many: Vec<&str> = std::iter::repeat_n(paths[0].as_str(), 256).collect();
    let (done, _, said) = run(&[&["label", "-o", &name("x")], &many[..]].concat());
    assert!(!done && said.contains("256 genomes, where labels tell up to 255 apart"), "{said}");
}
