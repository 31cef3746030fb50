//! Messages of all errors, in one file to review: `tests/messages.txt`.
//!
//! After a change of wording, `WARPSET_WRITE_MESSAGES=1 cargo test --test whole messages` writes the file again.

use std::io;
use std::path::PathBuf;

use warpset_base::file::{FileError, SameFile};
use warpset_base::words::OutOfMemory;
use warpset_gpu::GpuError;
use warpset_kmers::Error as E;

use crate::files::place;

#[path = "../../../tests/tests/all/messages/list.rs"]
mod list;

use list::{Messages, names_in_sources};

macro_rules! add {
    ($messages:ident: $($error:expr),* $(,)?) => { $($messages.add(&$error, stringify!($error));)* };
}

#[test]
fn messages_are_those_of_the_file() {
    let mut messages = Messages::default();
    let path = || PathBuf::from("reads.fastq.gz");
    let source = || io::Error::from(io::ErrorKind::UnexpectedEof);
    add![messages:
        E::InvalidK { k: 64, most: 63 },
        E::LongOnDevice { k: 41 },
        E::Read { path: path(), source: source() },
        E::Write { path: path(), source: source() },
        E::NotSequence { path: path(), reason: "line 2001 does not begin with `@`".into() },
        E::NoInput,
        E::NoKmers { k: 31 },
        E::AllLeftOut { what: "minimizers" },
        E::BudgetTooSmall { asked: 1 << 20, least: 1 << 24, threads: 8 },
        E::OverBudget { kmers: 1_000_000_000, needed: 1 << 34, allowed: 1 << 33 },
        E::TooManyKmers { kmers: 1 << 40, k: 17 },
        E::NotTable { path: "counts.kmers".into() },
        E::Table(Box::new(FileError::BadMagic.into())),
        E::DifferentK { left: 21, right: 31 },
        E::InvalidWindow { k: 30, w: 15 },
        E::NotIndex { path: "host.index".into(), reason: "it is no regular file".into() },
        E::NotLabels { path: "genomes.labels".into(), reason: "it is no regular file".into() },
        E::TooManyGenomes { genomes: 256 },
        E::DifferentWindow { path: "host.index".into(), found_k: 31, found_w: 15, k: 21, w: 11 },
        E::OnlyFilter { path: "host.pidx".into() },
        E::NotKmers { path: "host.index".into() },
        E::NotForDeacon,
        E::LongFilterForDeacon { k: 41 },
        E::WindowForDeacon { k: 63, w: 15 },
        E::Index(Box::new(OutOfMemory { bytes: 1 << 40 })),
        E::InvalidRule { hits: 0, share: 0.01 },
        E::Unpaired { path: path(), mates: "mates.fastq.gz".into(), reads: 1000 },
        E::OddReads { path: path(), reads: 1999 },
        E::OddFiles { files: 3 },
        E::NoMates { path: path() },
        E::NotKmer { kmer: "ACGU".into(), k: 4 },
        E::Interrupted { bytes: 1 << 20 },
        E::SameFile(SameFile { path: path(), other: "./reads.fastq.gz".into(), is_read: true, is_written: true }),
        E::WrongEnding { path: "clean.fq.xz".into(), ending: "xz".into(), written: "text is written plain, as .gz or as .zst" },
        E::OtherKind { path: path(), found: "BAM", needed: "FASTA or FASTQ is needed: pass the output of `samtools fastq`".into() },
        E::OtherMate { path: path(), mates: "mates.fastq.gz".into(), pair: 7, name: "r7".into(), other: "r8".into() },
        E::Threads { threads: 100_000 },
        E::IndexTooLarge { bytes: 1 << 40, free: 80 << 30 },
        E::TableOnDevice,
        E::Sequence(Box::new(warpset_sequence::Error::TooLong { positions: 1 << 32, most: 4_294_901_759 })),
        E::Device(Box::new(GpuError::NoDevice)),
        E::Primitives(Box::new(warpset_primitives::Error::InvalidBits { bits: 25 })),
        E::Filter(Box::new(OutOfMemory { bytes: 1 << 40 }.into())),
    ];
    let package = PathBuf::from(place("CARGO_MANIFEST_DIR", env!("CARGO_MANIFEST_DIR")));
    let in_sources = names_in_sources("kmers", &package.join("src")).into_iter().collect();
    messages.check(&package.join("tests/messages.txt"), &in_sources);
}
