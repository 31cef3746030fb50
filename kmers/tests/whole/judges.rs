//! Counts compared with those of KMC, where its programs are installed.

use std::fs;
use std::process::Command;

use crate::files::{Files, bases, kmers, random};

/// Checks the k-mers of reads of both strands, most of them with an error.
#[test]
fn counts_are_those_of_kmc() {
    if Command::new("kmc").output().is_err() {
        return warpset_gpu::testing::skipped("counts of KMC: no program kmc on this machine");
    }
    let (files, genome, mut next) = (Files::new(), bases(1, 20_000), random(2));
    let mut fasta = Vec::new();
    for _ in 0..2000 {
        let begin = next(genome.len() as u64 - 150) as usize;
        let mut read = genome[begin..begin + 150].to_vec();
        read[next(150) as usize] = b"ACGTN"[next(5) as usize];
        if next(2) == 0 {
            read.reverse();
            read.iter_mut().for_each(|base| *base = b"TGCAN"[b"ACGTN".iter().position(|b| b == base).unwrap()]);
        }
        fasta.extend([b">\n", &read[..], b"\n"].concat());
    }
    files.write("reads.fa", fasta);
    let path = |name: &str| files.path(name).to_str().unwrap().to_owned();
    let sorted = |text: &[u8]| {
        let mut lines: Vec<String> = str::from_utf8(text).unwrap().lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    fs::create_dir(files.path("temporary")).unwrap();
    for k in [21, 32, 33, 47, 55, 63] {
        let counting = Command::new("kmc")
            .args([&format!("-k{k}"), "-ci1", "-cs1000000000", "-m2", "-t1", "-fa"])
            .args(["reads.fa", "database", "temporary"].map(path))
            .output()
            .unwrap();
        assert!(counting.status.success(), "{counting:?}");
        let dumped = Command::new("kmc_dump").arg("-ci1").args(["database", "theirs"].map(path)).output().unwrap();
        assert!(dumped.status.success(), "{dumped:?}");
        let counted = kmers(&["count", "-k", &k.to_string(), "-o", &path("table"), &path("reads.fa")]);
        assert!(counted.status.success(), "{counted:?}");
        let ours = sorted(&kmers(&["list", &path("table")]).stdout);
        assert!(!ours.is_empty() && ours == sorted(&fs::read(files.path("theirs")).unwrap()), "{k}");
    }
}
