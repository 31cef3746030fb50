//! Empty or unusual input: samples without reads, white space, U, comments, padding after gzip, files of other kinds,
//! mates of other names.

use std::fs;
use std::io::Write;

use warpset_kmers::{
    Error, Index, Indexing, OddLetters, Pairing, Progress, Screening, Settings, Table, count_files, count_sequences,
};

use crate::files::{Files, bases, kmers};
use crate::reads::fastq;

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text).unwrap();
    gzip.finish().unwrap()
}

/// Returns an index of a genome, the genome, and reads that match.
fn prepared(files: &Files) -> (Index, Vec<u8>, Vec<Vec<u8>>) {
    let genome = bases(3, 2000);
    let path = files.write("genome.fa", [b">g\n", &genome[..], b"\n"].concat());
    let reads = (0..30).map(|i| genome[40 * i..40 * i + 160].to_vec()).collect();
    (Indexing::new(31, 15).unwrap().run(&[path]).unwrap(), genome, reads)
}

/// Checks that files without reads, of every form, alone, among others and in pairs, are samples of no reads.
#[test]
fn files_without_reads_are_samples() {
    let files = Files::new();
    let (index, _, reads) = prepared(&files);
    let full = files.write("full.fq", fastq(&reads));
    // The program itself writes such files if nothing matches.
    let table =
        count_files(&[files.write("other.fa", [b">o\n", &bases(77, 300)[..]].concat())], &Settings::new(31).unwrap());
    let table = table.unwrap();
    let own = ["none.fq", "none.fq.gz", "none.fq.zst"].map(|name| files.path(name));
    for path in &own {
        let screened = Screening::new(&table).matched(path).run(&[full.clone()]).unwrap();
        assert_eq!(screened.matched, 0);
    }
    let others = [files.write("empty", ""), files.write("line", "\n"), files.write("empty.gz", gzip(b""))];
    for none in own.iter().chain(&others) {
        for threads in [1, 3] {
            let screening = Screening::by_index(&index).threads(threads);
            let [yes, no] = ["yes.fq.gz", "no.fq"].map(|name| files.path(name));
            let screened = screening.clone().matched(&yes).unmatched(&no).run(&[none.clone()]).unwrap();
            assert_eq!((screened.matched, screened.unmatched), (0, 0), "{none:?}");
            assert_eq!((fs::read(&no).unwrap().len(), fs::read(&yes).unwrap().len()), (0, 28));
            let both = [none.clone(), full.clone(), none.clone()];
            assert_eq!(screening.run(&both).unwrap().matched, 30);
            let pairs = screening.clone().pairing(Pairing::Files);
            assert_eq!(pairs.run(&[none.clone(), none.clone()]).unwrap().matched, 0);
            for mates in [[&full, none], [none, &full]] {
                let error = pairs.run(&mates.map(Clone::clone)).unwrap_err();
                assert!(matches!(error, Error::Unpaired { reads: 0, .. }), "{error}");
            }
            assert_eq!(screening.pairing(Pairing::Interleaved).run(&[none.clone()]).unwrap().matched, 0);

            let settings = Settings::new(31).unwrap().threads(threads);
            let counted = count_files(&[none.clone()], &settings).unwrap();
            assert_eq!((counted.distinct(), counted.k().get()), (0, 31));
            counted.save(files.path("none.kmers")).unwrap();
            assert_eq!(Table::load(files.path("none.kmers")).unwrap().total(), 0);
            assert!(count_files(&both, &settings).unwrap() == count_files(&[full.clone()], &settings).unwrap());
            let indexing = Indexing::new(31, 15).unwrap().threads(threads);
            assert_eq!(indexing.run(&both).unwrap().len(), indexing.run(&[full.clone()]).unwrap().len());
        }
    }
}

/// Checks that records without letters are not taken for a sample without reads.
#[test]
fn records_without_letters_are_no_empty_sample() {
    let files = Files::new();
    for text in [">a\n", ";ACGTACGT\n>a\n;ACGTACGT\n", "@a\n\n+\n\n"] {
        for path in [files.write("a", text), files.write("a.gz", gzip(text.as_bytes()))] {
            for threads in [1, 3] {
                let counted = count_files(&[path.clone()], &Settings::new(3).unwrap().threads(threads));
                assert!(matches!(counted, Err(Error::NoKmers { k: 3 })), "{text:?} {counted:?}");
            }
        }
    }
}

/// Checks that white space at line ends, and U for T, change no answer, in any form of file, for all commands.
#[test]
fn white_space_and_uracil_change_nothing() {
    let files = Files::new();
    let (index, genome, reads) = prepared(&files);
    let settings = |threads| Settings::new(21).unwrap().threads(threads);
    let wanted = count_files(&[files.path("genome.fa")], &settings(1)).unwrap();
    let of_reads = count_files(&[files.write("plain.fq", fastq(&reads))], &settings(1)).unwrap();
    for end in [" \n", "\t\n", " \r\n", "  \t \r\n", "\r\n"] {
        let lines: Vec<u8> = genome.chunks(60).flat_map(|line| [line, end.as_bytes()].concat()).collect();
        let fasta = [&b">g"[..], end.as_bytes(), &lines].concat();
        let wrapped: String = reads
            .iter()
            .map(|read| {
                let read = std::str::from_utf8(read).unwrap();
                format!("@r{end}{read}{end}+{end}{}{end}", "I".repeat(read.len()))
            })
            .collect();
        for uracil in [false, true] {
            let turned = |text: &[u8]| -> Vec<u8> {
                text.iter().map(|&letter| if uracil && letter == b'T' { b'U' } else { letter }).collect()
            };
            let uracils = |text: &[u8]| text.iter().filter(|&&letter| letter == b'U').count() as u64;
            let (fasta, fastq) = (turned(&fasta), turned(wrapped.as_bytes()));
            for (name, text, wanted) in [("g.fa", &fasta, &wanted), ("r.fq", &fastq, &of_reads)] {
                for path in [files.write(name, text), files.write("packed.gz", gzip(text))] {
                    for threads in [1, 3] {
                        let progress = Progress::hidden();
                        let counted =
                            count_files(&[path.clone()], &settings(threads).progress(progress.clone())).unwrap();
                        assert!(counted == *wanted, "{name} {end:?} {uracil}");
                        let odd = OddLetters { others: 0, uracils: uracils(text) };
                        assert_eq!(progress.odd_letters(), odd, "{path:?}");
                        let screened = Screening::by_index(&index).threads(threads).unmatched(files.path("no"));
                        let screened = screened.run(&[path.clone()]).unwrap();
                        assert_eq!((screened.unmatched, screened.odd_letters), (0, odd));
                    }
                    let again = Indexing::new(31, 15).unwrap().run(&[path.clone()]).unwrap();
                    if name == "g.fa" {
                        assert_eq!(again.len(), index.len());
                    }
                }
            }
            // Reads are written unchanged.
            let all = files.path("all");
            Screening::by_index(&index).matched(&all).run(&[files.path("r.fq")]).unwrap();
            assert!(fs::read(all).unwrap() == fastq);
        }
    }
}

/// Checks that lines of FASTA that begin with `;` are comments: before the first record, after a name, and between
/// letters.
#[test]
fn comments_change_nothing() {
    let files = Files::new();
    let (index, genome, reads) = prepared(&files);
    let settings = |threads| Settings::new(21).unwrap().threads(threads);
    let plain: Vec<u8> = reads.iter().flat_map(|read| [&b">r\n"[..], read, b"\n"].concat()).collect();
    let wanted = count_files(&[files.path("genome.fa"), files.write("plain.fa", plain)], &settings(1)).unwrap();
    let comment = format!(";GATTACA>{}\n", "ACGT".repeat(40));
    let mut text = comment.repeat(3) + ">g x\n" + &comment;
    for (i, line) in genome.chunks(37).enumerate() {
        text += std::str::from_utf8(line).unwrap();
        text += "\n";
        text += &comment.repeat(i % 3);
    }
    for read in &reads {
        text += &format!(">r\n{comment}{}\n", String::from_utf8_lossy(read));
    }
    text += comment.trim_end();
    for path in [files.write("c.fa", &text), files.write("c.fa.gz", gzip(text.as_bytes()))] {
        for threads in [1, 3] {
            let progress = Progress::hidden();
            let counted = count_files(&[path.clone()], &settings(threads).progress(progress.clone())).unwrap();
            assert!(counted == wanted && progress.odd_letters() == OddLetters::default(), "{path:?}");
            let screened = Screening::by_index(&index).threads(threads).run(&[path.clone()]).unwrap();
            assert_eq!((screened.matched, screened.matched_bases), (31, 2000 + 30 * 160));
            assert_eq!(screened.odd_letters, OddLetters::default());
        }
        assert_eq!(Indexing::new(31, 15).unwrap().run(&[path]).unwrap().len(), index.len());
    }
    // Sequences in memory have no comments.
    assert_eq!(count_sequences([";ACGTA\n;CGT"], &Settings::new(3).unwrap()).unwrap().total(), 4);
}

/// Checks blanks after letters and not after qualities, and the other way round.
#[test]
fn white_space_is_none_of_the_qualities() {
    let files = Files::new();
    let (index, ..) = prepared(&files);
    let settings = |threads| Settings::new(3).unwrap().threads(threads);
    let clean: String = (0..200).map(|i| format!("@{i}\nACGTA\n+\nIIIII\n")).collect();
    let wanted = count_files(&[files.write("clean.fq", clean)], &settings(1)).unwrap();
    let text: String = (0..200)
        .map(|i| {
            let ends = [["", ""], [" ", ""], ["", "\t"], [" \r", "  "]][i % 4];
            format!("@{i}\nACGTA{}\n+\nIIIII{}\n", ends[0], ends[1])
        })
        .collect();
    for path in [files.write("a.fq", &text), files.write("a.fq.gz", gzip(text.as_bytes()))] {
        for threads in [1, 3] {
            assert!(count_files(&[path.clone()], &settings(threads)).unwrap() == wanted);
            assert_eq!(
                Screening::by_index(&index).threads(threads).run(&[path.clone()]).unwrap().unmatched_bases,
                1000
            );
        }
    }
}

/// Checks that the summary counts letters that ended k-mers, each once, wherever batches and pieces end.
#[test]
fn letters_that_end_kmers_are_counted() {
    let files = Files::new();
    let (index, genome, _) = prepared(&files);
    let mut text = b">g\n".to_vec();
    for (i, line) in genome.repeat(300).chunks(70).enumerate() {
        text.extend_from_slice(line);
        text.extend_from_slice(if i % 10 == 0 { b"Nn\n" } else { b"\n" });
    }
    let others = text.iter().filter(|letter| letter.eq_ignore_ascii_case(&b'N')).count() as u64;
    for path in [files.write("g.fa", &text), files.write("g.fa.gz", gzip(&text))] {
        for threads in [1, 3] {
            let progress = Progress::hidden();
            let settings = Settings::new(21).unwrap().threads(threads).progress(progress.clone());
            count_files(&[path.clone()], &settings).unwrap();
            assert_eq!(progress.odd_letters(), OddLetters { others, uracils: 0 }, "{path:?} {threads}");
            let screened = Screening::by_index(&index).threads(threads).run(&[path.clone()]).unwrap();
            assert_eq!(screened.odd_letters, OddLetters { others, uracils: 0 });
        }
    }
    // A record that is parsed again with its mate counts once.
    let reads: Vec<Vec<u8>> = (0..4000).map(|i| [&bases(i, 90)[..], b"N"].concat()).collect();
    let names = String::from_utf8(fastq(&reads)).unwrap();
    let pairs = files.write("pairs.fq", names);
    let screening = Screening::by_index(&index).pairing(Pairing::Interleaved).any_mates(true);
    assert_eq!(screening.run(&[pairs]).unwrap().odd_letters.others, 4000);
}

/// Checks that zeros may follow gzip, and that other bytes are an error after all records before them.
#[test]
fn what_follows_gzip_is_told() {
    let files = Files::new();
    let (index, _, reads) = prepared(&files);
    let text = fastq(&reads);
    let blocked = files.path("blocked.gz");
    Screening::by_index(&index).matched(&blocked).run(&[files.write("reads.fq", &text)]).unwrap();
    let wanted = count_files(&[files.path("reads.fq")], &Settings::new(21).unwrap()).unwrap();
    for packed in [gzip(&text), fs::read(&blocked).unwrap()] {
        for threads in [1, 3] {
            for zeros in [1, 17, 18, 512, 300_000] {
                let path = files.write("padded.gz", [&packed[..], &vec![0; zeros]].concat());
                let screened = Screening::by_index(&index).threads(threads).run(&[path.clone()]).unwrap();
                assert_eq!((screened.matched, screened.unmatched), (30, 0));
                assert!(count_files(&[path], &Settings::new(21).unwrap().threads(threads)).unwrap() == wanted);
            }
            for rest in [&b"hello, world"[..], b"\0\0\0x", b"@r\nACGT\n+\nIIII\n"] {
                let path = files.write("garbage.gz", [&packed[..], rest].concat());
                let error = Screening::by_index(&index).threads(threads).run(&[path.clone()]).unwrap_err().to_string();
                assert!(error.contains("no gzip") && error.contains("after 30 whole records"), "{error}");
                let error = count_files(&[path], &Settings::new(21).unwrap().threads(threads)).unwrap_err().to_string();
                assert!(error.contains("no gzip"), "{error}");
            }
        }
    }
}

/// Checks that kinds of files that are no FASTA or FASTQ are named, packed or not, for all commands.
#[test]
fn other_kinds_of_files_are_named() {
    let files = Files::new();
    let (index, ..) = prepared(&files);
    let utf16: Vec<u8> = "\u{feff}>a\nACGT\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    index.save(files.path("index")).unwrap();
    let index_bytes = fs::read(files.path("index")).unwrap();
    let protein = b">sp|P0AEX9|MALE_ECOLI\nMKIKTGARILALSALTTMMFSASALAKIEEGKLVIWINGDKGYNGLAEVGKKFEKDTGIK\n".to_vec();
    let cases: [(&str, Vec<u8>, &str); 12] = [
        ("a.bam", gzip(b"BAM\x01\0\0\0\0@HD\tVN:1.6\n"), "samtools fastq"),
        ("a.cram", b"CRAM\x03\0abc".to_vec(), "samtools fastq"),
        ("a.sam", b"@HD\tVN:1.6\n@SQ\tSN:x\tLN:5\n".to_vec(), "samtools fastq"),
        ("a.zip", b"PK\x03\x04rest".to_vec(), "unzip -p"),
        ("a.xz", b"\xfd7zXZ\0\0\0".to_vec(), "xz -dc"),
        ("a.bz2", b"BZh91AY&SY".to_vec(), "bzip2 -dc"),
        ("a.fa", b"\xef\xbb\xbf>a\nACGT\n".to_vec(), "byte-order mark"),
        ("b.fa", utf16, "UTF-16"),
        ("c.fa", index_bytes, "is an index"),
        ("d.fa", b">a\rACGTACGT\r>b\rAC\r".to_vec(), "CR alone; FASTA or FASTQ is needed: convert it"),
        ("e.fq", b"@a\rACGT\r+\rIIII\r".to_vec(), "CR alone"),
        ("f.faa", protein, "a file of proteins; FASTA or FASTQ is needed: pass sequences of DNA or RNA"),
    ];
    for (name, bytes, said) in cases {
        let packed = if name == "a.bam" { bytes.clone() } else { gzip(&bytes) };
        for (name, bytes) in [(name.to_owned(), bytes), (format!("{name}.gz"), packed)] {
            let path = files.write(&name, bytes);
            let screened = Screening::by_index(&index).run(&[path.clone()]).unwrap_err();
            let counted = count_files(&[path.clone()], &Settings::new(3).unwrap()).unwrap_err();
            for error in [screened, counted] {
                let text = error.to_string();
                assert!(
                    matches!(error, Error::OtherKind { .. }) && text.contains(said) && text.contains(&name),
                    "{text}"
                );
            }
        }
    }
    let wrapped = "@r\nACGTAC\nGTACGT\n+\nIIIIII\nIIIIII\n";
    for path in [files.write("wrapped.fq", wrapped), files.write("wrapped.fq.gz", gzip(wrapped.as_bytes()))] {
        let screened = Screening::by_index(&index).run(&[path.clone()]).unwrap_err().to_string();
        let counted = count_files(&[path], &Settings::new(3).unwrap()).unwrap_err().to_string();
        assert!(screened.contains("have four lines") && counted.contains("have four lines"), "{screened} {counted}");
    }
}

/// Checks that reads of other names are no mates unless the call allows it, in two files and in one.
#[test]
fn mates_have_equal_names() {
    let files = Files::new();
    let (index, _, reads) = prepared(&files);
    let named = |name: &dyn Fn(usize) -> String| -> String {
        reads
            .iter()
            .enumerate()
            .map(|(i, read)| format!("@{} x\n{}\n+\n{}\n", name(i), String::from_utf8_lossy(read), "I".repeat(160)))
            .collect()
    };
    let first = files.write("1.fq", named(&|i| format!("r{i}/1")));
    let second = files.write("2.fq", named(&|i| format!("r{i}/2")));
    let shuffled = files.write("3.fq", named(&|i| format!("r{}/2", if i == 20 { 21 } else { i })));
    let pairs = Screening::by_index(&index).pairing(Pairing::Files).matched(files.path("out"));
    assert_eq!(pairs.run(&[first.clone(), second]).unwrap().matched, 60);
    fs::remove_file(files.path("out")).unwrap();
    let mates = [first.clone(), shuffled];
    let error = pairs.run(&mates).unwrap_err();
    assert!(
        matches!(&error, Error::OtherMate { pair: 21, name, other, .. } if name == "r20/1" && other == "r21/2"),
        "{error}"
    );
    assert!(!files.path("out").exists());
    assert_eq!(pairs.clone().any_mates(true).run(&mates).unwrap().matched, 60);
    let interleaved = Screening::by_index(&index).pairing(Pairing::Interleaved);
    assert!(matches!(interleaved.run(&[first.clone()]), Err(Error::OtherMate { pair: 1, .. })));
    assert_eq!(interleaved.any_mates(true).run(&[first]).unwrap().matched, 30);
}

/// Checks that messages name the kinds of files, and options without effect.
#[test]
fn messages_are_the_programs_own() {
    let files = Files::new();
    let (_, _, reads) = prepared(&files);
    let name = |name: &str| files.path(name).to_str().unwrap().to_owned();
    files.write("reads.fq", fastq(&reads));
    let (genome, index, table, deacon, read) =
        (name("genome.fa"), name("g.index"), name("g.kmers"), name("g.idx"), name("reads.fq"));
    for args in [
        &["index", &genome, "-o", &index][..],
        &["count", &genome, "-o", &table],
        &["index", &genome, "--for-deacon", "-o", &deacon],
    ] {
        let output = kmers(&[args, &["-q"]].concat());
        assert!(output.status.success() && output.stderr.is_empty() && output.stdout.is_empty());
    }
    let filter = warpset_quotient::RankSelectQuotientFilter::builder(10).build().unwrap();
    filter.save(name("filter")).unwrap();
    let out = name("out");
    for (args, said) in [
        (&["list", &index][..], "g.index is an index; a table is needed, which `kmers count` writes"),
        (&["histogram", &read], "reads.fq is FASTQ; a table is needed, which `kmers count` writes"),
        (&["merge", &deacon, "-o", &out], "is no table of k-mers: pass what `kmers count`"),
        (&["list", &name("filter")], "is no table of k-mers: pass what `kmers count`"),
        (&["index", &table, "-o", &out], "g.kmers is a table; an index is needed, which `kmers index` writes"),
        (&["info", &genome], "genome.fa is FASTA; an index is needed, which `kmers index` writes"),
        (&["screen", &genome, &read], "genome.fa is FASTA; an index is needed, which `kmers index` writes"),
        (&["count", &index, "-o", &out], "g.index is an index; FASTA or FASTQ is needed: pass the sequences"),
        (&["index", &genome, "-o", &out, "--kind", "sequences", "-w", "5"], "-w has no effect"),
        (&["index", &genome, "-o", &out, "--bits-per-kmer", "8"], "--bits-per-kmer has no effect"),
        (&["screen", &table, &read, "--map"], "--map has no effect"),
        (&["screen", &deacon, &read, "--map"], "--map has no effect"),
        (&["screen", &index, &read, "--matched", &out, "--compression", "9"], "--compression has no effect"),
        (&["screen", &index, &read, "--any-mates"], "--paired"),
    ] {
        let output = kmers(args);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(said), "{args:?}: {error}");
        assert!(!error.contains("::") && !error.contains("load"), "{error}");
    }
    assert!(!files.path("out").exists());

    // The summary identifies the index.
    let summary = |index: &str, more: &[&str]| -> serde_json::Value {
        let output = kmers(&[&["screen", index, &read, "--summary", "-"], more].concat());
        assert!(output.status.success());
        serde_json::from_slice(&output.stdout).unwrap()
    };
    for path in [&index, &table, &deacon] {
        let found = summary(path, &["--interleaved", "--any-mates"]);
        let info = String::from_utf8(kmers(&["info", path]).stderr).unwrap();
        assert!(info.trim_end().ends_with(found["index_checksum"].as_str().unwrap()), "{info} {found}");
        assert_eq!(
            (&found["index"], &found["pairs"], &found["reads"]),
            (&path.as_str().into(), &15.into(), &30.into())
        );
        assert_eq!(found["version"], format!("kmers {}", env!("CARGO_PKG_VERSION")));
        assert!(found["kmers"].as_u64().unwrap() > 100);
    }
    assert_eq!(summary(&index, &[])["index_checksum"], summary(&index, &["--map"])["index_checksum"]);
    assert_ne!(summary(&index, &[])["index_checksum"], summary(&deacon, &[])["index_checksum"]);
    // Tables that cannot be added up are named.
    let other = name("other.kmers");
    assert!(kmers(&["count", "-k", "21", &genome, "-o", &other]).status.success());
    let error = String::from_utf8(kmers(&["merge", &table, &other, "-o", &out]).stderr).unwrap();
    assert!(
        error.contains("cannot add ") && error.contains("other.kmers to the tables before it: one table"),
        "{error}"
    );
    let version = String::from_utf8(kmers(&["--version"]).stdout).unwrap();
    assert_eq!(version.trim_end(), format!("kmers {}", env!("CARGO_PKG_VERSION")));
}
